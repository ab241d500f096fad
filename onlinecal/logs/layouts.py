"""Layouts of files that platforms export: which column is what, and which words are outcomes."""

from dataclasses import dataclass

from onlinecal.core.errors import InvalidData
from onlinecal.core.rows import Rows, is_word
from onlinecal.logs.opposites import plain


@dataclass(frozen=True)
class Layout:
    """A layout; names of columns are plain: letters and digits in lower case."""

    name: str
    marks: tuple[str, ...]  # columns by which it is known, all of them
    forecast: str
    outcome: str
    signs: tuple[
        str, ...
    ] = ()  # columns of which one must be there, too, unless there is the word of `settled`
    question: str = ""  # rows with one label there have one outcome
    cluster: str = ""  # rows with one label there may depend on each other
    words: tuple[str, str] | None = None  # for outcomes 1 and 0; None for these numbers
    drop: tuple[str, ...] = ()  # words for no outcome
    settled: tuple[str, str] | None = None  # the word for an expected outcome, and the column that holds it
    only: tuple[
        tuple[str, str], ...
    ] = ()  # columns, where they are there, with the word of rows that are read
    keys: tuple[tuple[str, str], ...] = ()  # columns that are equal to those of a file with the outcomes
    beside: str = ""  # that file
    no_outcomes: tuple[str, ...] = ()  # columns that look like outcomes
    caution: str = ""


#: Manifold: docs.manifold.markets/api. Metaculus: the README in its exports. ForecastBench: its wiki and data sets.
LAYOUTS = (
    Layout(
        "Manifold export of bets", ("contractid", "probbefore", "probafter"), "probafter", "resolution",
        question="contractid", words=("YES", "NO"), drop=("CANCEL", "MKT"), settled=("MKT", "resolutionprobability"),
        only=(("outcometype", "BINARY"), ("isredemption", "false")), keys=(("contractid", "id"),),
        beside="an export of markets", no_outcomes=("outcome",),
    ),
    Layout(
        "Manifold export of markets", ("probability", "resolution"), "probability", "resolution",
        signs=("isresolved", "outcometype", "resolutionprobability"), words=("YES", "NO"), drop=("CANCEL", "MKT"),
        settled=("MKT", "resolutionprobability"), only=(("outcometype", "BINARY"),),
        caution="the probability is the last price, maybe after the outcome was known",
    ),
    # Of open markets alone, records have no resolution.
    Layout(
        "Manifold export of markets", ("probability", "isresolved"), "probability", "resolution",
        signs=("outcometype",), words=("YES", "NO"), drop=("CANCEL", "MKT"), only=(("outcometype", "BINARY"),),
        keys=(("id", "id"),), beside="an export of markets that are resolved", no_outcomes=("isresolved",),
    ),
    Layout(
        "Metaculus export of forecasts", ("questionid", "probabilityyes"), "probabilityyes", "resolution",
        question="questionid", words=("yes", "no"), drop=("annulled", "ambiguous"), only=(("questiontype", "binary"),),
        keys=(("questionid", "questionid"),), beside="question_data.csv",
    ),
    Layout(
        "Metaculus export of questions", ("communityprediction", "resolution"), "communityprediction", "resolution",
        words=("yes", "no"), drop=("annulled", "ambiguous"), only=(("questiontype", "binary"), ("type", "binary")),
    ),
    Layout(
        "ForecastBench forecast set", ("id", "source", "forecast", "resolutiondate"), "forecast", "resolvedto",
        cluster="id", only=(("resolved", "true"),), beside="the resolution set", no_outcomes=("resolved",),
        keys=(("id", "id"), ("source", "source"), ("direction", "direction"), ("resolutiondate", "resolutiondate")),
    ),
)  # fmt: skip


def named(table: Rows) -> dict[str, str]:
    """Plain name → name of the columns of a file; of several with one plain name the first."""
    return {plain(name): name for name in reversed(table.columns) if table.columns.count(name) == 1}


def layout_of(table: Rows) -> Layout | None:
    """The layout of a file, if it has that of a platform."""
    of = named(table)
    for one in LAYOUTS:
        if of.keys() >= {*one.marks}:
            word = one.settled and one.settled[:1]
            signs = not one.signs or not of.keys().isdisjoint(one.signs)
            if signs or (word and any(is_word(cell, word) for cell in table.sample(of[one.outcome]))):
                return one
    return None


def joined(table: Rows, other: Rows, key: str | None) -> Rows:
    """The rows of a file beside those of another, by the columns of its layout or by `key` in both."""
    import polars as pl

    mine, theirs, layout = named(table), named(other), layout_of(table)
    keys = [(key, key)] if key else []
    if layout is not None:
        pairs = [pair for pair in layout.keys if pair[0] in mine and pair[1] in theirs]
        keys = keys or [(mine[a], theirs[b]) for a, b in pairs]
    if not keys:
        raise InvalidData(
            f"{table.name} and {other.name}: no column that both have is known to tell questions apart; expected --id "
            "COLUMN, or exports of Manifold, Metaculus or ForecastBench"
        )
    for a, b in keys:
        table.check_column(a)
        other.check_column(b)
    left = list(zip(*(table.texts(a) for a, _ in keys), strict=True))
    right = list(zip(*(other.texts(b) for _, b in keys), strict=True))
    place = {label: i for i, label in enumerate(right)}
    if len(place) < len(right):
        i = next(i for i, label in enumerate(right) if place[label] != i)
        raise InvalidData(
            f"{other.where(i)}: {', '.join(filter(None, right[i]))} comes again in {other.line(place[right[i]])}; "
            "expected each question once"
        )
    # The date at which a market closes is not known when it is forecast.
    short = dict[tuple[str, ...], int | None]()
    for i, label in enumerate(right):
        short[label[:-1]] = None if label[:-1] in short else i
    found = [
        short.get(label[:-1]) if len(label) > 1 and not label[-1] else place.get(label) for label in left
    ]
    if not any(at is not None for at in found):
        raise InvalidData(
            f"{other.name}: no row has a {keys[0][1]!r} that {table.name} has in {keys[0][0]!r}; expected the outcomes "
            "of its questions"
        )
    more = [name for name in other.columns if name not in {*table.columns, *(b for _, b in keys)}]
    added = other.frame.select(str(other.columns.index(name)) for name in more)
    added = added.select(pl.all().gather(pl.Series(found, dtype=pl.UInt32)))
    added.columns = [str(len(table.columns) + i) for i in range(len(more))]
    frame = table.frame.with_columns(pl.Series(str(table.columns.index(keys[0][0])), table.texts(keys[0][0])))
    frame = frame.hstack(added).with_columns(pl.Series("line", table.places, dtype=pl.Int64))
    return Rows(table.name, [*table.columns, *more], frame, table.delimiter, table.above)
