//! The two layouts of the same registers.

use super::*;

fn header(layout: u8, cached: u8) -> Vec<u8> {
    let mut text = b"HYLL".to_vec();
    text.extend([layout, 0, 0, 0]);
    text.extend([cached; 8]);
    text
}

#[test]
fn both_layouts_of_the_same_registers_are_the_same() {
    // 16,000 zeros by a long run, 383 by another and a short one, and the last one is 5.
    let mut sparse = header(SPARSE, 1);
    let long = |count: usize| [0x40 | ((count - 1) >> 8) as u8, (count - 1) as u8];
    sparse.extend(long(16_000));
    sparse.extend(long(320));
    sparse.push(62);
    sparse.push(0x80 | 4 << 2);
    let mut dense = header(DENSE, 2);
    dense.extend(vec![0; 12_288]);
    let last = dense.len() - 1;
    dense[last] = 5 << 2;
    let registers_of = registers(&sparse).unwrap();
    assert_eq!(registers_of.len(), REGISTERS);
    assert_eq!((registers_of[REGISTERS - 2], registers_of[REGISTERS - 1]), (0, 5));
    assert_eq!(registers(&dense).unwrap(), registers_of);
    dense[last] = 6 << 2;
    assert_ne!(registers(&dense).unwrap(), registers_of);
}

#[test]
fn a_register_may_span_two_bytes() {
    let mut dense = header(DENSE, 0);
    dense.extend(vec![0; 12_288]);
    dense[HEADER_BYTES] = 0b1100_0001;
    dense[HEADER_BYTES + 1] = 0b0000_1010;
    let registers = registers(&dense).unwrap();
    assert_eq!(registers[..3], [1, 0b10_1011, 0]);
}

#[test]
fn what_is_none_stays_a_string() {
    assert_eq!(registers(b"HYLL"), None);
    assert_eq!(registers(b"a text that is long enough"), None);
    assert_eq!(registers(&header(DENSE, 0)), None);
    assert_eq!(registers(&header(SPARSE, 0)), None);
    let mut too_long = header(SPARSE, 0);
    too_long.extend([0x7f, 0xff, 0]);
    assert_eq!(registers(&too_long), None);
    let mut cut = header(SPARSE, 0);
    cut.push(0x7f);
    assert_eq!(registers(&cut), None);
}
