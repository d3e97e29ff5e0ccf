//! The checksum of dumps and files: CRC-64 with the polynomial of Jones, bits reversed, beginning at zero.

/// The polynomial 0xad93d23594c935a9, its lowest bit first.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// What a byte makes of the sum, and what it makes of it with one to seven bytes behind it.
static TABLES: [[u64; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut byte = 0;
        while byte < 256 {
            let sum = tables[behind - 1][byte];
            tables[behind][byte] = sum >> 8 ^ tables[0][(sum & 0xff) as usize];
            byte += 1;
        }
        behind += 1;
    }
    tables
};

pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    extended(0, bytes)
}

/// The checksum of bytes whose beginning has this one, and which end with those.
pub(crate) fn extended(sum: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let sum = words.by_ref().fold(sum, |sum, word| {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        let word = (sum ^ word).to_le_bytes();
        word.iter().enumerate().fold(0, |sum, (at, byte)| sum ^ TABLES[7 - at][usize::from(*byte)])
    });
    words.remainder().iter().fold(sum, |sum, byte| TABLES[0][usize::from(sum as u8 ^ byte)] ^ sum >> 8)
}
