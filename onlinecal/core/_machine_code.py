"""Machine code of kernels by numba, and where it is kept; imported when the first kernel is called."""

import contextlib
import gc
import hashlib
import importlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np
from numba import extending, njit, types
from numba._dynfunc import make_function
from numba.core import typed_passes, untyped_passes
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.cpu import CPUContext
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numpy.typing import NDArray

from onlinecal.core._compile import spent
from onlinecal.core._lowering import from_text

#: a function of a kernel by its machine code; untyped, since its call has fewer arguments than its definition
intrinsic: Any = extending.intrinsic

#: the types of results, and numba's for them
_KINDS: dict[Any, Any] = {
    bool: types.boolean, int: types.int64, float: types.float64,
    NDArray[np.int64]: types.int64[::1], NDArray[np.float64]: types.float64[::1],
}  # fmt: skip
_HOW: Any = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}


class Called(types.Dispatcher):
    """A part as it is called: compiled for numbers, not for each constant that it is given."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        args, kws = map(types.unliteral, args), {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_type(context, tuple(args), kws)


extending.register_model(Called)(extending.models.OpaqueModel)


def whole(function: Callable[..., Any]) -> Any:
    """The function that Python calls."""
    result = get_type_hints(function).get("return", Any)
    return _cached(function if result is Any else from_text(function, _kind(result)), _Whole)


def _kind(result: Any) -> Any:
    """The type of a result as numba has it."""
    if get_origin(result) is tuple:
        return types.BaseTuple.from_types(tuple(map(_kind, get_args(result))))
    return _KINDS[result]


def part(function: Callable[..., Any], inlined: dict[str, Any]) -> Any:
    """The function that kernels take in."""
    return njit(pipeline_class=_Part, **_HOW, **inlined)(function)


def native(signature: Any, function: Callable[..., Any]) -> tuple[int, Any]:
    """Compiles a function (result and error by address, then arguments) that returns 0 without error; its address."""
    kept = _cached(from_text(function, signature.return_type), _Step)
    try:
        kept.compile(signature)
    except NumbaError:  # other text is left to numba, or refused by it with its place
        kept = _cached(function, _Step)
        kept.compile(signature)
    made = kept.overloads[signature.args]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name)), kept


def _cached(function: Callable[..., Any], compiler: Any) -> Any:
    """Compiles a function and keeps the machine code."""
    kept = _can_be_cached(function)
    compiled = njit(pipeline_class=compiler, **_HOW)(function)
    if kept:
        compiled._cache = _Kept(function)
        _forget_stale(Path(str(compiled.stats.cache_path)))
    return compiled


class _Kept(FunctionCache):
    """Loads machine code without all of numba's modules, which know how to make it."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        # A function that was sent is of a module that may not be found here: it is compiled.
        with self._guard_against_spurious_io_errors(), contextlib.suppress(ImportError):
            return self._load_overload(sig, target_context)
        return None


@cache
def _load_numba() -> None:
    """Imports what numba has for arrays, which would import scipy.linalg to see whether it is there: 0.2 s."""
    linalg: Any = importlib.import_module("numba.np.linalg")
    find, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    importlib.import_module("numba.np.arraymath")
    linalg.ensure_blas = find
    # Without this numba would begin again at each intrinsic that it finds on the way: 0.1 s.
    with _refreshed_once():
        _refresh(cpu_target.target_context)


_contexts: Any = CPUContext
_refresh = _contexts.refresh


@contextlib.contextmanager
def _refreshed_once() -> Iterator[None]:
    """While it lasts numba takes note of new intrinsics alone, and does not look into all its modules for them."""

    def refresh(context: Any) -> None:
        context.install_registry(next(iter(context._registries)))

    _contexts.refresh = refresh
    try:
        yield
    finally:
        _contexts.refresh = _refresh


class _Flags(Flags):
    """The flags of numba, quick to hash and to compare, which it does 25,000 times a game."""

    __slots__ = ()
    _hash = hash(Flags())
    _defaults: ClassVar = Flags().values()

    def __hash__(self) -> int:
        return self._hash  # that of all flags: of their names

    def __eq__(self, other: object) -> bool:
        return bool(super().__eq__(other))

    def values(self) -> dict[str, Any]:
        return self._defaults | self._values


#: passes of numba that kernels do without: they have no closures, contexts or lists of several kinds. Those that inline
#: remove code that they take for dead: what a step writes into its arrays.
_LEFT_OUT = {
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.AnnotateTypes,
    typed_passes.DumpParforDiagnostics,
    typed_passes.NoPythonSupportedFeatureValidation,
}


#: how numba finds the signature of a call, and those that were found while a kernel is compiled
_functions: Any = types.BaseFunction
_find, _found = _functions.get_call_type, dict[Any, Any]()


def _find_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """The signature of a call. Numba would search for it in each pass, and at each call of the same types."""
    call = function, tuple(args), tuple(kws.items())
    if _found.get(call) is None:
        _found[call] = _find(function, context, args, kws)
    return _found[call]


class _Kernel(Compiler):
    """Compiles a function in the passes that kernels need."""

    def define_pipelines(self) -> Any:
        (passes,) = super().define_pipelines()
        passes.passes = [each for each in passes.passes if each[0] not in _LEFT_OUT]
        passes.finalize()
        return [passes]


class _Whole(_Kernel):
    """Compiles a function with all its parts."""

    def __init__(self, *arguments: Any) -> None:
        _load_numba()
        super().__init__(*arguments)

    def compile_extra(self, function: Any) -> Any:
        """Without searching for garbage, which would take a tenth of the time."""
        collecting, began = gc.isenabled(), time.perf_counter()
        gc.disable()
        self.state.flags = _Flags(self.state.flags)
        self.state.library = _WholeLibrary(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        _functions.get_call_type = _find_once
        try:
            with _refreshed_once():
                made = super().compile_extra(function)
        finally:
            _functions.get_call_type = _find
            _found.clear()
            if collecting:
                gc.enable()
            spent.seconds += time.perf_counter() - began
        # As after loading kept code: where the code of parts finds what it knows of Python.
        for environment in made._find_referenced_environments():
            made.codegen.set_env(environment.env_name, environment)
        return made


# The next classes set flags late, as numba compiles its own functions once for all callers with equal flags.


class _Step(_Whole):
    """Compiles a function that Python does not call."""

    def define_pipelines(self) -> Any:
        self.state.flags.no_cpython_wrapper = True
        return super().define_pipelines()


class _Part(_Kernel):
    """Compiles a function that becomes machine code in others alone, which halves the time for small ones."""

    def define_pipelines(self) -> Any:
        self.state.flags.no_compile = self.state.flags.no_cpython_wrapper = True
        self.state.library = _PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()

    def compile_extra(self, function: Any) -> Any:
        self.state.flags = _Flags(self.state.flags)
        made = super().compile_extra(function)
        name = make_function(
            sys.modules[__name__], function.__name__, "", 0, made.environment, (made.library,)
        )
        made.target_context.insert_user_function(name, made.fndesc, [made.library])
        return made._replace(entry_point=name)


class _WholeLibrary(JITCodeLibrary):
    """Code that is optimised once: numba would do so three times, to count fewer references to arrays."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _PartLibrary(JITCodeLibrary):
    """Code that becomes machine code, and is optimised from function to function, in what it becomes a part of."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


def _can_be_cached(function: Callable[..., Any]) -> bool:
    """Whether its machine code can be kept: a folder must be writable, and the code lie in a file."""
    try:
        FunctionCache(function)
    except RuntimeError:
        if function.__module__.startswith("onlinecal.") and Path(function.__code__.co_filename).is_file():
            _say_that_nothing_is_kept()
        return False
    return True


@cache
def _say_that_nothing_is_kept() -> None:
    warnings.warn(
        "compiled code cannot be kept, since neither the package's folder nor the user's cache can be written; each "
        "start compiles anew. Set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def _forget_stale(folder: Path) -> None:
    """Deletes a folder's machine code if the package has changed: numba sees changes of a kernel's own file alone."""
    stamp, sources = folder / "onlinecal.stamp", _sources()
    with contextlib.suppress(OSError):  # where nothing can be written, nothing is cached
        if not stamp.exists() or stamp.read_text() != sources:
            for index in folder.glob("*.nbi"):
                index.unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            stamp.write_text(sources)


#: rooms of which no kernel of another file takes a function or a number; a test holds it
APART = {
    "checks", "commands", "exploit", "forecasts", "growth", "monitoring", "recalibration", "report", "search", "study",
    "worlds",
}  # fmt: skip
#: lines that say nothing to a compiler: comments and docstrings
_WORDS = re.compile(rb'^ *(?:#.*|r?"""[^"]*(?:"{1,2}[^"]+)*""")$', re.MULTILINE)


@cache
def _sources() -> str:
    """A digest of the code on which kernels of other files depend; docstrings and comments do not count."""
    package = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for source in sorted(package.glob("*/**/*.py")):
        name = source.relative_to(package)
        if name.parts[0] not in APART:
            digest.update(f"{name}\n".encode() + _WORDS.sub(b"", source.read_bytes()))
    return digest.hexdigest()
