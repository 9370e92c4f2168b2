"""The report: one self-contained HTML page of all groups, their trees and their credit.

    data      a group as plain values: keys at every level, rewards, raw texts
    overview  what the first table and curve need, of all groups
    document  the file: page, style, script, and the groups as compressed blocks

The page's own code is in the files beside these modules. It computes credit by itself, so that
discount, prior and level can be changed there; a test in a real browser holds its numbers to those
of this package.
"""

from rtmc.report.page.document import PageWriter, open_page

__all__ = ["PageWriter", "open_page"]
