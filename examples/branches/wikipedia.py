#!/usr/bin/env python3
"""One page of an encyclopedia, edited in two datacenters (TARDiS, section 2): what a merge of keys spoils, and branches do not.

Run it against a dev cluster:

    cargo run --release -- dev --protocol tardis --keyspace 1=eiger     # in one terminal
    pip install redis
    python3 examples/branches/wikipedia.py                              # in another; --port 7001 is the default

The page about Mr. Banditoni has a content, references and an image. Alice writes in his favour, and Carlo, who has read her
text, adds references that praise him. In the other datacenter Bruno writes against him, and Davide, who has read that, takes a
worse picture. Only the content is in conflict, as far as a store of keys can see. The page is spoilt all the same.
"""

from branches import merge, transaction
from stage import Links, arguments, has_branches, paint, require_branches, session, tell, title, wait_for, wait_for_same_states

CONTENT, REFERENCES, IMAGE, TALK = (f"page:banditoni:{part}" for part in ("content", "references", "image", "talk"))
PARTS = {"content": CONTENT, "references": REFERENCES, "image": IMAGE}
BEFORE = {CONTENT: "a politician", REFERENCES: "[1] the electoral roll", IMAGE: "official.png"}
FOR = {CONTENT: "an honest statesman", REFERENCES: "[1] praise [2] more praise", IMAGE: "official.png"}
AGAINST = {CONTENT: "a notorious crook", REFERENCES: "[1] the electoral roll", IMAGE: "mugshot.png"}
SIDES = {"in favour": FOR, "against": AGAINST}


def page(client):
    return dict(zip(PARTS.values(), client.mget(PARTS.values()), strict=True))


def edits(one, two, edit):
    """The same four edits whatever the store; `edit(client, reads, changes)` makes one."""
    edit(one, [CONTENT], {CONTENT: FOR[CONTENT]})
    tell("dc1", f"Alice rewrites the content: {FOR[CONTENT]}")
    edit(two, [CONTENT], {CONTENT: AGAINST[CONTENT]})
    tell("dc2", f"Bruno rewrites the content: {AGAINST[CONTENT]}")
    edit(one, [CONTENT, REFERENCES], {REFERENCES: FOR[REFERENCES]})
    tell("dc1", f"Carlo has read it and adds references: {FOR[REFERENCES]}")
    edit(two, [CONTENT, IMAGE], {IMAGE: AGAINST[IMAGE]})
    tell("dc2", f"Davide has read it and changes the image: {AGAINST[IMAGE]}")


def stance(shown):
    """In favour, against, or neither as a whole."""
    return next((name for name, side in SIDES.items() if shown == side), "both at once")


def show(who, shown):
    for part, key in PARTS.items():
        tell(who, f"{part}: {shown[key]}")


def edit_keys(client, reads, changes):
    client.mget(reads)
    client.mset(changes)


def edit_transaction(client, reads, changes):
    with transaction(client):
        edit_keys(client, reads, changes)


def key_by_key(links, sessions):
    title("Key by key: what a flat keyspace makes of it")
    one, two = sessions[:2]
    one.mset(BEFORE)
    wait_for("all datacenters have the page", lambda: all(page(client) == BEFORE for client in sessions))
    with links.cut():
        edits(one, two, edit_keys)
    wait_for("the datacenters agree", lambda: len({str(page(client)) for client in sessions}) == 1)
    shown = page(sessions[2])
    show("dc3", shown)
    assert shown[REFERENCES] == FOR[REFERENCES] and shown[IMAGE] == AGAINST[IMAGE], shown
    assert stance(shown) == "both at once"
    tell("", paint("bad", "one author's content is lost; the references praise him, and the picture does not"))


def resolve(merging):
    """A moderator's rule: the branch that changed more of the page is shown, all of it, and the other is discussed."""
    client = merging.session
    keys = list(PARTS.values())
    branches = [dict(zip(keys, values, strict=True)) for values in zip(*map(merging.values, keys), strict=True)]
    before = dict(zip(keys, (merging.common(key)[0] for key in keys), strict=True))
    changed = [sum(branch[key] != before[key] for key in keys) for branch in branches]
    # Of several that changed as much, the first: the highest id, the same wherever this runs.
    kept = branches[changed.index(max(changed))]
    client.mset(kept)
    client.sadd(TALK, *(f"proposed: {branch[CONTENT]}" for branch in branches if branch != kept))


def branch_by_branch(links, sessions):
    title("Branch by branch")
    one, two = sessions[:2]
    with transaction(one):
        one.mset(BEFORE)
        one.delete(TALK)
    wait_for_same_states(sessions)
    with links.cut():
        edits(one, two, edit_transaction)
    wait_for_same_states(sessions)
    leaves = one.execute_command("BRANCH", "LIST")
    tell("", f"two branches, each a page that makes sense: {' and '.join(leaves)}")
    for key, first, second in one.execute_command("BRANCH", "DIFF", *leaves):
        tell("", f"they differ in {key.split(':')[-1]}: {first!r}, {second!r}")
    tell("", f"written on both: {', '.join(one.execute_command('BRANCH', 'CONFLICTS'))}")
    assert {stance(page(client)) for client in (one, two)} == {"in favour", "against"}
    merge(one, resolve)
    wait_for_same_states(sessions)
    shown = page(sessions[2])
    show("dc3", shown)
    tell("dc3", f"on the talk page: {', '.join(sessions[2].smembers(TALK))}")
    assert stance(shown) in SIDES, shown
    assert len(sessions[2].smembers(TALK)) == 1
    tell("", paint("good", f"the page is {stance(shown)}, in all its parts, and nobody's text is lost"))


def main():
    options = arguments(__doc__)
    ports = [options.port + number for number in range(3)]
    flat = [session(port, options.flat) for port in ports]
    sessions = [session(port, options.keyspace) for port in ports]
    require_branches(sessions[0], options.keyspace)
    links = Links(options.port)
    if not has_branches(flat[0]):
        key_by_key(links, flat)
    else:
        tell("", f"keyspace {options.flat} has branches, too: start with --keyspace {options.flat}=eiger to see key by key")
    branch_by_branch(links, sessions)


if __name__ == "__main__":
    main()
