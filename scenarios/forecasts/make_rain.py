"""Makes rain.csv: daily forecasts of rain in Seattle for 2013 to 2015, by two rules that know earlier days only.

    python scenarios/forecasts/make_rain.py

climatology: the share of wet days among those within 15 days of the same day of the year, in all earlier years.
persistence: the share of wet days among all earlier days whose day before was as wet or dry as yesterday.
Both count one wet and one dry day more than there were, and are rounded to 0.01. A day is wet where any precipitation
was measured; the days are those of onlinecal/data, NOAA's records as vega_datasets has them.
"""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

from onlinecal.core.files import located

SOURCE = "package:onlinecal/data/seattle-weather.csv"
NEAR = 15
FIRST = date(2013, 1, 1)


def days() -> list[tuple[date, int]]:
    """Each day of the record, and whether it was wet."""
    with located(SOURCE).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (date.fromisoformat(row["date"].replace("/", "-")), int(float(row["precipitation"]) > 0.0))
        for row in rows
    ]


def climatology(past: list[tuple[date, int]], today: date) -> float:
    """By the same season of earlier years."""
    place = today.timetuple().tm_yday
    near = [
        wet
        for day, wet in past
        if day.year < today.year and min(apart := abs(day.timetuple().tm_yday - place), 365 - apart) <= NEAR
    ]
    return (sum(near) + 1) / (len(near) + 2)


def persistence(past: list[tuple[date, int]], today: date) -> float:
    """By the weather of the day before."""
    yesterday = past[-1][1]
    after = [past[i][1] for i in range(1, len(past)) if past[i - 1][1] == yesterday]
    return (sum(after) + 1) / (len(after) + 2)


def main() -> None:
    """Writes rain.csv beside this file."""
    record = days()
    with Path(__file__).with_name("rain.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["date", "climatology", "persistence", "rain"])
        for i, (day, wet) in enumerate(record):
            if day >= FIRST:
                stated = (f"{rule(record[:i], day):.2f}" for rule in (climatology, persistence))
                writer.writerow([day.isoformat(), *stated, wet])


if __name__ == "__main__":
    main()
