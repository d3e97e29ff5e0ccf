//! Places of members of sorted sets; the answers are those of Redis 7.0.15.

use super::{changes_nothing, check};

const SICILY: &str = "GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => 2";

fn in_sicily(lines: &str) {
    check(&format!("{SICILY}\n{lines}"));
}

#[test]
fn places_are_scores() {
    in_sicily(
        "TYPE s => zset
         ZSCORE s Palermo => 3479099956230698
         GEOADD s CH XX 13.5 38 Palermo 1 1 x => 1
         GEOADD s NX 0 0 Palermo 13 37 Agrigento => 1
         GEOADD s NX XX 0 0 a => -ERR syntax error
         GEOADD s 0 0 a 1 1 => -ERR syntax error
         GEOADD s 181 0 a => -ERR invalid longitude,latitude pair 181.000000,0.000000
         GEOADD s 0 x a => -ERR value is not a valid float",
    );
}

#[test]
fn what_is_told_of_members() {
    in_sicily(
        "GEOPOS s Palermo x => [[\"13.36138933897018433\" \"38.11555639549629859\"] nil-array]
         GEOPOS none x => [nil-array]
         GEOHASH s Palermo Catania x => [\"sqc8b49rny0\" \"sqdtr74hyu0\" nil]
         GEODIST s Palermo Catania => \"166274.1516\"
         GEODIST s Palermo Catania km => \"166.2742\"
         GEODIST s Palermo Catania MI => \"103.3182\"
         GEODIST s Palermo x => nil
         GEODIST none a b => nil
         GEODIST s Palermo Catania yd => -ERR unsupported unit provided. please use M, KM, FT, MI
         SADD set a => 1
         GEOPOS set => -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn what_is_near() {
    in_sicily(
        "GEOADD s 12.758489 38.788135 edge1 17.241510 38.788135 edge2 => 2
         GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km ASC => [\"Catania\" \"Palermo\"]
         GEOSEARCH s FROMLONLAT 15 37 BYBOX 400 400 km ASC => [\"Catania\" \"Palermo\" \"edge2\" \"edge1\"]
         GEOSEARCH s FROMMEMBER Catania BYRADIUS 200 km DESC COUNT 1 WITHDIST => [[\"Palermo\" \"166.2742\"]]
         GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 => [\"Catania\"]
         GEORADIUS s 15 37 200 km WITHDIST WITHHASH DESC => \
            [[\"Palermo\" \"190.4424\" 3479099956230698] [\"Catania\" \"56.4413\" 3479447370796909]]
         GEORADIUSBYMEMBER s Palermo 1 m WITHCOORD => \
            [[\"Palermo\" [\"13.36138933897018433\" \"38.11555639549629859\"]]]
         GEOSEARCH none FROMMEMBER x BYRADIUS 1 m => []
         GEOSEARCH s FROMMEMBER x BYRADIUS 1 m => -ERR could not decode requested zset member
         GEOSEARCH s FROMMEMBER Catania BYRADIUS -1 m => -ERR radius cannot be negative
         GEOSEARCH s BYRADIUS 1 m ASC ASC => \
            -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for geosearch
         GEOSEARCH s FROMMEMBER Catania COUNT 1 ASC => \
            -ERR exactly one of BYRADIUS and BYBOX can be specified for geosearch
         GEORADIUS s 1 1 1 m ANY => -ERR the ANY argument requires COUNT argument
         GEORADIUS s 1 1 1 m COUNT 0 => -ERR COUNT must be > 0",
    );
}

#[test]
fn what_is_near_is_stored() {
    in_sicily(
        "GEOSEARCHSTORE t s FROMLONLAT 15 37 BYRADIUS 100 km => 1
         ZRANGE t 0 -1 WITHSCORES => (\"Catania\"=3479447370796909)
         GEORADIUS s 15 37 200 km STOREDIST t COUNT 1 => 1
         ZRANGE t 0 -1 => [\"Catania\"]
         GEOSEARCHSTORE t s FROMLONLAT 0 0 BYRADIUS 1 km => 0
         EXISTS t => 0
         GEOSEARCHSTORE t s FROMLONLAT 0 0 BYRADIUS 1 km WITHDIST => \
            -ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
    );
    changes_nothing("GEOADD s 1 1 a\n GEORADIUS s 1 1 1 km");
}

#[test]
fn an_area_goes_over_the_edge_of_the_map() {
    check(
        "GEOADD s 179.9 0 east -179.9 0 west 0 84.9 north => 3
         GEOSEARCH s FROMLONLAT 179.99 0 BYRADIUS 20 km ASC COUNT 9 => [\"east\" \"west\"]
         GEOSEARCH s FROMLONLAT 180 84.9 BYRADIUS 1200 km => [\"north\"]",
    );
}
