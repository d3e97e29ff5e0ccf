//! Both layouts hold the same registers, and what is none is refused.

use super::*;

#[test]
fn layouts() {
    let mut registers = Registers::default();
    for element in 0..20_000 {
        registers.add(element.to_string().as_bytes());
        if element % 997 != 0 && element > 40 {
            continue;
        }
        let text = registers.write(Encoding::Sparse);
        let (read, encoding) = Registers::read(&text).expect("it was just written");
        assert_eq!(read, registers);
        let is_small = text.len() <= SPARSE_BYTES_MAX;
        assert_eq!(encoding, if is_small { Encoding::Sparse } else { Encoding::Dense });
        let dense = registers.write(Encoding::Dense);
        assert_eq!(dense.len(), HEADER_BYTES + DENSE_BYTES);
        assert_eq!(Registers::read(&dense), Ok((registers.clone(), Encoding::Dense)));
        assert!(is_dense(&dense) && !is_dense(&text[..HEADER_BYTES]));
        let mut changed = dense.to_vec();
        let rises = add_to_dense(&mut changed, b"one more");
        let mut expected = registers.clone();
        assert_eq!(expected.add(b"one more"), rises);
        assert_eq!(changed, expected.write(Encoding::Dense));
    }
}

#[test]
fn what_is_none() {
    let good = Registers::default().write(Encoding::Sparse);
    assert_eq!(&good[16..], b"\x7f\xff");
    for text in [&b""[..], b"HYLL", &[b"NYLL", &good[4..]].concat(), &[b"HYLL\0", &good[5..]].concat()] {
        assert_eq!(Registers::read(text), Err(NO_HLL));
    }
    let registers = |body: &[u8]| Registers::read(&[&good[..16], body].concat());
    for body in [&b""[..], b"\x7f", b"\x7f\xfe", b"\x7f\xff\x00", b"hello"] {
        assert_eq!(registers(body), Err(CORRUPTED), "{body:x?}");
    }
}
