"""Tables of `compare` as they are printed, and as Markdown."""

from onlinecal.report.comparing import answer, of_fronts, of_paired, of_people, of_ranking


def print_compare(study, measure):
    answer(study, {}, measure, None, markdown=False, as_json=False)


def print_ranking(found):
    of_ranking(found).print()


def print_fronts(found):
    of_fronts(found).print()


def print_paired(found, refused):
    of_paired(found, refused).print()


def print_people(rows):
    of_people(rows).print()


def front_legend(found):
    return " ".join(of_fronts(found).notes)


def ranking_markdown(found):
    return of_ranking(found).markdown()


def fronts_markdown(found):
    return of_fronts(found).markdown()
