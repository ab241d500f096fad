"""What is in a results file: the plan, and what was played, each in tables that other tools can read.

What was played is kept under what it depends on. The plan says which of it is shown, under which labels and in which
order: forecasters that are the same share their numbers, and numbers that no longer fit are not shown.

    curves                  a view with names: forecaster, nature, horizon, measure, round, run, total
    meta(key, value)        name, title, scenario (the file's text), version, columns (their order), people (labels of
                            decision makers), incompatible (pairs that cannot be played, and why), seal (of the plan)
    plan(place, key, forecaster, nature, schedule, horizon, runs, recorded, sight)   what is to be shown; key: of what
                            was played; nature: without the schedule; sight: what it sees of forecasts (`core.sight`)
    played(id, key, content, horizon, runs, seconds, loop, open, people, accounts, seal)    content: all that the
                            numbers depend on, as JSON; open: questions without an outcome at each checkpoint; people,
                            accounts: decision makers who join and leave, and their numbers, packed
    failed(key, error, at)  what could not be played, why, and when it was last tried
    measures(id, name, column)                                        column: what the name stands for, as JSON
    totals(played, measure, round, run, total)                        T·μ
    promises(place, measure, text, formula, kind, against, upper, bound)

Seals are digests of the plan and of each cell's numbers: what something else has changed or deleted is not shown.
"""

#: statements that make the tables; a change raises `database.FORMAT`
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE plan (
    place INTEGER PRIMARY KEY, key TEXT NOT NULL, forecaster TEXT NOT NULL, nature TEXT NOT NULL, schedule TEXT NOT
    NULL, horizon INTEGER NOT NULL, runs INTEGER NOT NULL, recorded INTEGER NOT NULL, sight INTEGER NOT NULL);
CREATE TABLE played (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL, horizon INTEGER NOT NULL,
    runs INTEGER NOT NULL, seconds REAL NOT NULL, loop TEXT NOT NULL, open TEXT NOT NULL, people TEXT NOT NULL,
    accounts BLOB NOT NULL, seal TEXT NOT NULL);
CREATE TABLE failed (key TEXT PRIMARY KEY, error TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE measures (id INTEGER PRIMARY KEY, name TEXT NOT NULL, "column" TEXT NOT NULL UNIQUE);
CREATE TABLE totals (
    played INTEGER NOT NULL REFERENCES played, measure INTEGER NOT NULL REFERENCES measures, round INTEGER NOT
    NULL, run INTEGER NOT NULL, total REAL NOT NULL, PRIMARY KEY (played, measure, round, run)) WITHOUT ROWID;
CREATE TABLE promises (
    place INTEGER NOT NULL REFERENCES plan, measure TEXT NOT NULL, text TEXT NOT NULL, formula TEXT NOT NULL,
    kind TEXT NOT NULL, against TEXT NOT NULL, upper INTEGER NOT NULL, bound REAL NOT NULL);
CREATE VIEW curves AS
    SELECT p.forecaster, p.nature || CASE p.schedule WHEN '' THEN '' ELSE ', ' || p.schedule END AS nature, p.horizon,
        m.name AS measure, t.round, t.run, t.total
    FROM plan p JOIN played d ON d.key = p.key AND d.runs >= p.runs
        JOIN totals t ON t.played = d.id AND t.run < p.runs JOIN measures m ON m.id = t.measure;
"""
