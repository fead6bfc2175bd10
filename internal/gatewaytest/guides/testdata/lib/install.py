"""Replaces pip in guides, which have no network: `pip install [--quiet] NAME...` links the packages
NAME and all that they require into this environment, from the first folder of $SITE_PACKAGES that
has them."""

import os
import sys
import sysconfig
from collections import Counter
from importlib import metadata


def required(folder, names):
    """Returns the distributions with these names and their requirements, by name."""
    sys.path.append(folder)
    from pip._vendor.packaging.requirements import Requirement

    found, waiting = {}, [(Requirement(name), set()) for name in names]
    seen = set()
    while waiting:
        requirement, extras = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in extras or {""}):
            continue
        key = (requirement.name.lower().replace("_", "-"), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        distribution = next(iter(metadata.distributions(name=requirement.name, path=[folder])), None)
        if distribution is None:
            return None
        found[key[0]] = distribution
        waiting += [(Requirement(text), requirement.extras) for text in distribution.requires or []]
    return found


def top(distribution):
    """Returns the files of a distribution by their first folder, without its programs."""
    files = {}
    for file in distribution.files:
        if file.parts[0] != "..":
            files.setdefault(file.parts[0], []).append(file)
    return files


def link(distribution, owners):
    """Links the files of a distribution, and writes its programs with the Python of this environment."""
    target = sysconfig.get_path("purelib")
    for name, files in top(distribution).items():
        # Distributions may share a folder. A folder with one owner is linked as a whole, so that all
        # environments share its compiled files.
        for path in [name] if owners[name] == 1 else files:
            to = os.path.join(target, path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if not os.path.lexists(to):
                os.symlink(distribution.locate_file(path), to)
    for entry in distribution.entry_points.select(group="console_scripts"):
        path = os.path.join(sys.prefix, "bin", entry.name)
        with open(path, "w") as program:
            program.write(f"#!{sys.executable}\nfrom {entry.module} import {entry.attr}\n{entry.attr}()\n")
        os.chmod(path, 0o755)


def main():
    command, *names = [word for word in sys.argv[1:] if word != "--quiet"]
    if command != "install" or not names or any(name.startswith("-") for name in names):
        sys.exit(f"pip: guides may use 'pip install [--quiet] NAME...' only, not: pip {' '.join(sys.argv[1:])}")
    for folder in os.environ.get("SITE_PACKAGES", "").split():
        found = required(folder, names)
        if found:
            owners = Counter(name for every in metadata.distributions(path=[folder]) for name in top(every))
            for distribution in found.values():
                link(distribution, owners)
            print("Successfully installed", *found)
            return
    sys.exit(f"pip: no set of packages has {' '.join(names)}")


main()
