"""The tables of a results file, a database of SQLite: the plan, and what was played.

What was played is kept under what it depends on: a game under its players, horizon, checkpoints, seed, schedule and
decision makers; below it each column of totals under the measure or task that it is of. The plan says which of it is
shown, under which labels and in which order: forecasters that are the same share their numbers, and numbers that no
longer fit are not shown.

    meta(key, value)        name, title, scenario (the file's text), options (what was given in place of its keys),
                            version, people (labels of decision makers), incompatible (pairs that cannot be played, and
                            why), steps (of the forecaster's grid, for each cell of the plan), seal (of the plan)
    plan(place, key, forecaster, nature, schedule, horizon, runs, recorded, sight, panel)   what is to be shown; key: of
                            the game; nature: without the schedule; sight: what it sees of forecasts (`core.guarantee`)
    panels(id, columns)     of plan: a JSON list of the ids of columns, in the order in which they are shown
    bounds(place, guarantee, bound), guarantees(id, measure, text, formula, kind, against, upper)
    columns(id, key, name, column, content)   column: what the name stands for, as JSON; content: what its numbers
                            depend on beside the game, as JSON; key: the digest of both
    games(id, key, content, times, held, totals, seconds, loop, open, people, accounts, seal)   content: all that the
                            rounds depend on, as JSON, in which {"#": id} stands for a text of parts, and key its
                            digest; times: the checkpoints, a JSON list; held: a JSON list of [column, runs]; totals:
                            T·μ of these columns one after the other, each (checkpoints, runs) numbers of 8 bytes, IEEE
                            754, the lowest byte first; open: questions without an outcome at each checkpoint; people,
                            accounts: decision makers who join and leave, and their numbers (`entries.packed`)
    parts(id, digest, text)
    failed(key, error, at)  games that could not be played, why, and when that was last tried
    gammas(game, first, packed, seal)   the level sets of runs from `first` on, at all checkpoints (`study.gammas`)

Seals are checksums of the plan, of each game with its totals, and of each part of the level sets. `onlinecal export`
writes the totals as a table for other tools.
"""

#: statements that make the tables; a change raises `database.FORMAT`
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE plan (
    place INTEGER PRIMARY KEY, key TEXT NOT NULL, forecaster TEXT NOT NULL, nature TEXT NOT NULL, schedule TEXT NOT
    NULL, horizon INTEGER NOT NULL, runs INTEGER NOT NULL, recorded INTEGER NOT NULL, sight INTEGER NOT NULL,
    panel INTEGER NOT NULL REFERENCES panels);
CREATE TABLE panels (id INTEGER PRIMARY KEY, columns TEXT NOT NULL);
CREATE TABLE guarantees (
    id INTEGER PRIMARY KEY, measure TEXT NOT NULL, text TEXT NOT NULL, formula TEXT NOT NULL, kind TEXT NOT NULL,
    against TEXT NOT NULL, upper INTEGER NOT NULL);
CREATE TABLE bounds (
    place INTEGER NOT NULL REFERENCES plan, guarantee INTEGER NOT NULL REFERENCES guarantees, bound REAL NOT NULL);
CREATE TABLE columns (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, "column" TEXT NOT NULL,
    content TEXT NOT NULL);
CREATE TABLE games (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL, times TEXT NOT NULL, held TEXT NOT NULL,
    totals BLOB NOT NULL, seconds REAL NOT NULL, loop TEXT NOT NULL, open TEXT NOT NULL, people TEXT NOT NULL,
    accounts BLOB NOT NULL, seal TEXT NOT NULL);
CREATE TABLE failed (key TEXT PRIMARY KEY, error TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE parts (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, text TEXT NOT NULL);
CREATE TABLE gammas (
    game INTEGER NOT NULL REFERENCES games, first INTEGER NOT NULL, packed BLOB NOT NULL, seal TEXT NOT NULL,
    UNIQUE (game, first));
"""
