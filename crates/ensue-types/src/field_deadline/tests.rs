//! The bytes of a field's deadline.

use super::FieldDeadline;
use crate::{DatacenterId, Incarnation, OperationId, PartitionId, Position};

#[test]
fn bytes_say_what_was_written() {
    let of = OperationId {
        datacenter: DatacenterId(3),
        incarnation: Incarnation(0x0102),
        partition: PartitionId(0x0304),
        position: Position(0x0506_0708_090a_0b0c),
    };
    let deadline = FieldDeadline { ms: 0x1112_1314_1516_1718, of };
    let bytes = deadline.to_bytes();
    let expected = [
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 0x07, 0x06, 0x05, 0x04,
        0x03, 0x02, 0x01, 3,
    ];
    assert_eq!(bytes[..], expected);
    assert_eq!(FieldDeadline::of_bytes(&bytes), Some(deadline));
    assert_eq!(FieldDeadline::of_bytes(&bytes[..20]), None);
    assert_eq!(FieldDeadline::of_bytes(&[0; 22]), None);
}
