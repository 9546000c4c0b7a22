"""The tree of errors that the docstring draws is the tree of the classes."""

import re

from fewbench import errors


def drawn(text):
    """The base of each class below a root of a drawn tree."""
    bases, path = {}, []
    for left, name in re.findall(r"^([│├└─ ]*)([A-Z]\w*(?:Error|Warning))\b", text, re.M):
        if left and not left.endswith("─ "):  # the second line of a description
            continue
        depth = len(left) // 4
        if depth:
            bases[name] = path[depth - 1]
        path[depth:] = [name]
    return bases


def test_the_drawn_tree_is_that_of_the_classes():
    classes = [getattr(errors, name) for name in errors.__all__]
    classes.remove(errors.FewbenchError)
    assert drawn(errors.__doc__) == {one.__name__: one.__bases__[0].__name__ for one in classes}
    for one in classes:  # a description names the further bases
        for other in one.__bases__[1:]:
            assert re.search(rf"\b{one.__name__} [^├└]*\b{other.__name__}\b", errors.__doc__)
