//! Digests against published values, and around the edges of blocks.

use super::Sha1;

#[test]
fn digests_are_those_of_the_standard() {
    let million = vec![b'a'; 1_000_000];
    for (text, digest) in [
        (&b""[..], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (b"x", "11f6ad8ec52a2984abaafd7c3b516503785c2072"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
        ),
        (&million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    ] {
        assert_eq!(Sha1::of(text).as_str(), digest);
    }
}

#[test]
fn a_digest_is_read_in_either_case_and_nothing_else_is() {
    let digest = Sha1::of(b"return 1");
    assert_eq!(Sha1::parse(digest.as_str().to_uppercase().as_bytes()), Some(digest));
    assert_eq!(Sha1::parse(b"abc"), None);
    assert_eq!(Sha1::parse("g".repeat(40).as_bytes()), None);
}
