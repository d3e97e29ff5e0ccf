//! The checksum of dumps: CRC-64 with the polynomial of Jones, bits reversed, beginning at zero.

/// The polynomial 0xad93d23594c935a9, its lowest bit first.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

static TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8)
}
