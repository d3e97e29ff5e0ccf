//! The story itself, act by act, and its verdict.
//!
//! Alice is served by dc1, her phone and Carol by dc2, her boss Bob by dc3. The link between dc1 and dc3 is cut just
//! before Alice takes Bob off the list, so the news cannot reach dc3; the photo that she adds afterwards goes by way of
//! dc2, and can. A store that does not order causes before effects then shows Bob the photo.

use super::Promise;
use super::narrator::Narrator;
use super::session::{Answer, Session};
use super::stage::{DATACENTERS, KEYSPACE, Stage};
use super::watch::{self, PARTY, Seen, Watch};
use anyhow::bail;
use std::thread;
use std::time::{Duration, Instant};

/// How long the datacenters may take to agree after the links are healed.
const AGREED_WITHIN: Duration = Duration::from_secs(5);
/// How long anything else may take to arrive.
const ARRIVED_WITHIN: Duration = Duration::from_secs(20);
/// How long Bob tries to see what he must not.
const TEMPTED_FOR: Duration = Duration::from_millis(1_500);
const POLL: Duration = Duration::from_millis(5);
const KEYS: [&str; 7] =
    ["album:readers", "album:photos", "album:comments", "album:likes", "photo:1", PARTY, "notice"];
const LIKES: i64 = 5;

pub(super) struct Album<'a> {
    pub(super) stage: &'a Stage,
    pub(super) narrator: &'a Narrator,
    pub(super) promised: Promise,
}

/// The people, each with a session.
struct Cast {
    alice: Session,
    phone: Session,
    carol: Session,
    bob: Session,
}

impl Album<'_> {
    /// Tells the story; true if what was promised was seen.
    pub(super) fn tell(&self) -> anyhow::Result<bool> {
        let mut cast = Cast {
            alice: self.stage.session(1)?,
            phone: self.stage.session(2)?,
            carol: self.stage.session(2)?,
            bob: self.stage.session(3)?,
        };
        self.an_album(&mut cast)?;
        let watch = Watch::start(self.stage.session(3)?);
        let result = self.the_rest(&mut cast);
        // Whatever happened: a cluster that we found must not be left with links cut.
        let healed = self.stage.heal_all();
        let seen = watch.finish();
        let agreed = result?;
        healed?;
        Ok(self.verdict(seen?, agreed))
    }

    fn the_rest(&self, cast: &mut Cast) -> anyhow::Result<bool> {
        self.a_link_breaks(cast)?;
        self.bob_looks(cast)?;
        self.a_chain_of_comments(cast)?;
        self.alone(cast)?;
        self.together_again(cast)
    }

    fn an_album(&self, cast: &mut Cast) -> anyhow::Result<()> {
        let Cast { alice, bob, .. } = cast;
        self.narrator.act(1, "Alice has an album, and a list of those who may look at it");
        for key in KEYS {
            alice.ask(&["DEL", key])?;
        }
        self.agree(ARRIVED_WITHIN)?;
        self.act("Alice", 1, alice, &["SADD", "album:readers", "bob", "carol"])?;
        self.act("Alice", 1, alice, &["SET", "photo:1", "a sunset"])?;
        self.act("Alice", 1, alice, &["SADD", "album:photos", "photo:1"])?;
        arrives(bob, &["SISMEMBER", "album:photos", "photo:1"], |answer| *answer == Answer::Integer(1))?;
        self.act("Bob", 3, bob, &["SMEMBERS", "album:readers"])?;
        self.act("Bob", 3, bob, &["GET", "photo:1"])?;
        self.narrator.tell("Bob is Alice's boss. He is on the list, and he looks.");
        Ok(())
    }

    fn a_link_breaks(&self, cast: &mut Cast) -> anyhow::Result<()> {
        let Cast { alice, phone, .. } = cast;
        self.narrator.act(2, "The link between dc1 and dc3 breaks, and there was a party");
        self.narrator.shell(&self.stage.link(1, 3, "cut")?);
        self.narrator.tell("dc2 still reaches both. Alice takes her boss off the list:");
        self.act("Alice", 1, alice, &["SREM", "album:readers", "bob"])?;
        self.narrator
            .tell("Her phone talks to dc2. She waits until it shows the new list, and adds a photo:");
        arrives(phone, &["SISMEMBER", "album:readers", "bob"], |answer| *answer == Answer::Integer(0))?;
        self.act("Alice", 2, phone, &["SMEMBERS", "album:readers"])?;
        self.act("Alice", 2, phone, &["SET", PARTY, "Alice dancing on the table"])?;
        self.act("Alice", 2, phone, &["SADD", "album:photos", PARTY])?;
        Ok(())
    }

    fn bob_looks(&self, cast: &mut Cast) -> anyhow::Result<()> {
        self.narrator.act(3, "Bob reloads the album, again and again");
        self.narrator.tell("dc3 receives everything from dc2. A stranger's notice proves it:");
        let notice = ["SET", "notice", "lunch is ready"];
        self.act("Dave", 2, &mut self.stage.session(2)?, &notice)?;
        arrives(&mut cast.bob, &["GET", "notice"], |answer| *answer != Answer::Nothing)?;
        self.act("Bob", 3, &mut cast.bob, &["GET", "notice"])?;
        let end = Instant::now() + TEMPTED_FOR;
        let mut page = watch::look(&mut cast.bob)?;
        while Instant::now() < end && !page.leaks() {
            thread::sleep(POLL);
            page = watch::look(&mut cast.bob)?;
        }
        let shown = cast.bob.transaction(&watch::PAGE[..2])?;
        for (words, answer) in watch::PAGE.iter().zip(&shown) {
            self.narrator.command("Bob", 3, words, &answer.shown());
        }
        if page.leaks() {
            self.act("Bob", 3, &mut cast.bob, &["GET", PARTY])?;
            self.narrator.bad("dc3 shows the photo together with the old list: Bob sees the party");
        } else {
            self.narrator.tell("The old list, and the old album: older than in dc2, and true together.");
            self.narrator
                .good("dc3 has received the photo, and hides it until the list that it rests on is here");
        }
        Ok(())
    }

    fn a_chain_of_comments(&self, cast: &mut Cast) -> anyhow::Result<()> {
        let Cast { alice, carol, .. } = cast;
        self.narrator.act(4, "Carol comments, and Alice replies");
        arrives(carol, &["GET", PARTY], |answer| *answer != Answer::Nothing)?;
        self.act("Carol", 2, carol, &["HSET", "album:comments", "1", "what a night!"])?;
        arrives(alice, &["HEXISTS", "album:comments", "1"], |answer| *answer == Answer::Integer(1))?;
        self.act("Alice", 1, alice, &["HSET", "album:comments", "2", "do not tell Bob"])?;
        self.narrator.tell("Photo, comment, reply: each one rests on the one before, over two datacenters.");
        Ok(())
    }

    fn alone(&self, cast: &mut Cast) -> anyhow::Result<()> {
        self.narrator.act(5, "dc1 loses its last link, and both sides go on");
        self.narrator.shell(&self.stage.link(1, 2, "cut")?);
        let mut slowest = Duration::ZERO;
        for (name, datacenter, person) in
            [("Alice", 1, &mut cast.alice), ("Carol", 2, &mut cast.carol), ("Bob", 3, &mut cast.bob)]
        {
            let begin = Instant::now();
            for _ in 1..LIKES {
                person.ask(&["INCR", "album:likes"])?;
            }
            slowest = slowest.max(begin.elapsed() / (LIKES as u32 - 1));
            self.act(name, datacenter, person, &["INCR", "album:likes"])?;
        }
        self.narrator.good(format_args!(
            "{LIKES} likes were accepted in each datacenter, at {:.1} ms a like in the slowest",
            slowest.as_secs_f64() * 1_000.0
        ));
        Ok(())
    }

    fn together_again(&self, cast: &mut Cast) -> anyhow::Result<bool> {
        self.narrator.act(6, "The links are healed");
        self.narrator.shell(&self.stage.link(1, 2, "heal")?);
        self.narrator.shell(&self.stage.link(1, 3, "heal")?);
        let took = match self.agree(AGREED_WITHIN) {
            Ok(took) => took,
            Err(error) => {
                self.narrator.bad(format_args!("{error}"));
                return Ok(false);
            }
        };
        for datacenter in 1..=DATACENTERS {
            let digest = self.stage.session(datacenter)?.ask(&["CAUSAL", "DIGEST"])?;
            self.narrator.command("Test", datacenter, &["CAUSAL", "DIGEST"], &digest.shown());
        }
        self.narrator.good(format_args!("all datacenters agree after {:.2} s", took.as_secs_f64()));
        let likes = self.act("Bob", 3, &mut cast.bob, &["GET", "album:likes"])?;
        let page = watch::look(&mut cast.bob)?;
        self.act("Bob", 3, &mut cast.bob, &["SMEMBERS", "album:readers"])?;
        let complete = likes.text() == (LIKES * DATACENTERS as i64).to_string()
            && !page.bob_may_look
            && page.has_party
            && page.has_reply;
        if complete {
            self.narrator.good("every like counted once; the photo is here, and Bob is off the list");
        } else {
            self.narrator.bad(format_args!("something is missing: likes {}, {page:?}", likes.shown()));
        }
        Ok(complete)
    }

    fn verdict(&self, seen: Seen, complete: bool) -> bool {
        let Seen { looks, leaks, orphans } = seen;
        let port = self.stage.client_port(3);
        self.narrator.tell(format_args!(
            "Bob looked {looks} times (a MULTI that only reads, on port {port}, keyspace {KEYSPACE})."
        ));
        let order_held = leaks == 0 && orphans == 0;
        let (kept, text) = match (self.promised, complete, order_held) {
            (_, false, _) => (false, "the datacenters did not end up with all that was written".into()),
            (Promise::OrderHolds, true, true) => (
                true,
                "causality held: Bob never saw the photo with the old list, nor a reply without its comment"
                    .into(),
            ),
            (Promise::OrderHolds, true, false) => {
                (false, format!("causality was broken: {leaks} leaks and {orphans} orphans in {looks} looks"))
            }
            (Promise::OrderIsLost, true, true) => (
                false,
                "this time the anomaly was not seen; eventual promises neither that nor its absence".into(),
            ),
            (Promise::OrderIsLost, true, false) => (
                true,
                format!(
                    "the anomaly was shown: in {leaks} of {looks} looks Bob saw the photo while he was on the list. \
                     Eventual only promises that all agree in the end, and they do. Try `ensue demo --protocol eiger`"
                ),
            ),
        };
        self.narrator.verdict(kept, &text);
        kept
    }

    /// Lets somebody do something, and tells it.
    fn act(
        &self,
        name: &str,
        datacenter: usize,
        person: &mut Session,
        words: &[&str],
    ) -> anyhow::Result<Answer> {
        let answer = person.ask(words)?;
        self.narrator.command(name, datacenter, words, &answer.shown());
        Ok(answer)
    }

    /// Waits until all datacenters hold the same; returns how long it took.
    fn agree(&self, within: Duration) -> anyhow::Result<Duration> {
        let begin = Instant::now();
        let mut sessions: Vec<Session> = (1..=DATACENTERS)
            .map(|datacenter| self.stage.session(datacenter))
            .collect::<anyhow::Result<_>>()?;
        loop {
            let mut digests = Vec::new();
            for session in &mut sessions {
                digests.push(session.ask(&["CAUSAL", "DIGEST"])?);
            }
            if digests.windows(2).all(|pair| pair[0] == pair[1]) {
                return Ok(begin.elapsed());
            }
            if begin.elapsed() > within {
                bail!("after {} s the datacenters do not agree: {digests:?}", within.as_secs());
            }
            thread::sleep(POLL);
        }
    }
}

/// Asks until the answer is as wanted.
fn arrives(session: &mut Session, words: &[&str], wanted: impl Fn(&Answer) -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + ARRIVED_WITHIN;
    loop {
        let answer = session.ask(words)?;
        if wanted(&answer) {
            return Ok(());
        }
        if Instant::now() > end {
            bail!(
                "{} still answers {} after {} s",
                words.join(" "),
                answer.shown(),
                ARRIVED_WITHIN.as_secs()
            );
        }
        thread::sleep(POLL);
    }
}
