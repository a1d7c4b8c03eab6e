"""Order statistics and how they are printed."""


def quantile(values, part):
    """Linear between the neighbours; values need not be sorted."""
    ordered = sorted(values)
    if not ordered:
        return float("nan")
    at = part * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def spread(values):
    """'0.88 [0.85 0.91]': median and quartiles."""
    return f"{median(values):.2f} [{quantile(values, .25):.2f} {quantile(values, .75):.2f}]"


def table(headers, rows):
    """Columns as wide as they need to be; the first is flush left."""
    cells = [headers] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    lines = []
    for number, row in enumerate(cells):
        texts = [cell.ljust(width) if i == 0 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(texts).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join(lines)
