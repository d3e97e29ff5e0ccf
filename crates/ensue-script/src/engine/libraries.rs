//! What the prelude builds its libraries from: functions that answer whether they went well, and with what.
//!
//! An error that a native function raises would reach a script without its place in the text, so the words of an error
//! are an answer, and the prelude raises them. Only the end of a run is raised here.

use super::budget::{Budget, Stop};
use super::convert::number;
use super::json::Problem;
use super::random::Random;
use super::{bits, json, load, msgpack, packed};
use crate::sha1::Sha1;
use mlua::{Lua, MultiValue, Table, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps that compiling a text takes beside those for its bytes.
const STEPS_TO_COMPILE: u64 = 200;
const STEPS_TO_COMPILE_A_BYTE: u64 = 10;

type Shared<'a> = (&'a Arc<Budget>, &'a Arc<Random>, &'a Arc<AtomicBool>);
type Native = fn(&Lua, &Budget, Vec<Value>) -> Result<Vec<Value>, Problem>;

/// Functions whose errors the prelude raises at the place of the call.
const RAISING: [(&str, Native); 14] = [
    ("cjson.encode", json_encode),
    ("cjson.decode", json_decode),
    ("cmsgpack.pack", msgpack_pack),
    ("cmsgpack.unpack", msgpack_unpack),
    ("cmsgpack.unpack_one", msgpack_unpack_one),
    ("cmsgpack.unpack_limit", msgpack_unpack_limit),
    ("struct.pack", struct_pack),
    ("struct.unpack", struct_unpack),
    ("struct.size", struct_size),
    ("bit.fold", bit_fold),
    ("bit.shift", bit_shift),
    ("bit.one", bit_one),
    ("bit.tohex", bit_hex),
    ("find_plain", find_plain),
];

/// The same for the settings of `cjson`: each is set if a value is given, and answers what it is.
pub fn register_settings(lua: &Lua, natives: &Table, settings: &Arc<json::Settings>) -> mlua::Result<()> {
    lua.set_app_data(settings.clone());
    let own = settings.clone();
    let depth = lua.create_function(move |_, (encodes, depth): (bool, Option<f64>)| {
        Ok(own.depth(encodes, depth.map(|depth| depth as usize)))
    })?;
    natives.raw_set("json_depth", depth)?;
    let own = settings.clone();
    let invalid =
        lua.create_function(move |_, written: Option<String>| Ok(own.invalid_numbers(written.as_deref())))?;
    natives.raw_set("json_invalid_numbers", invalid)
}

/// Puts everything native into a table.
pub fn register(lua: &Lua, natives: &Table, (budget, random, resp3): Shared<'_>) -> mlua::Result<()> {
    for (name, native) in RAISING {
        let budget = budget.clone();
        let short = name.rsplit('.').next().unwrap_or(name);
        let function = lua.create_function(move |lua, values: MultiValue| {
            let answer = native(lua, &budget, values.into_iter().collect());
            let (went_well, mut values) = match answer {
                Ok(values) => (true, values),
                Err(Problem::Words(words)) => (false, vec![Value::String(lua.create_string(words)?)]),
                Err(Problem::Argument(at, what)) => {
                    let words = format!("bad argument #{at} to '{short}' ({what})");
                    (false, vec![Value::String(lua.create_string(words)?)])
                }
                Err(Problem::Lua(error)) => return Err(error),
            };
            values.insert(0, Value::Boolean(went_well));
            Ok(MultiValue::from_vec(values))
        })?;
        natives.raw_set(name, function)?;
    }
    let own = budget.clone();
    natives.raw_set("spend", lua.create_function(move |_, bytes: f64| own.spend_bytes(bytes as usize))?)?;
    let own = budget.clone();
    let out_of_memory = lua.create_function(move |_, ()| Err::<(), _>(own.stop(Stop::Memory)))?;
    natives.raw_set("out_of_memory", out_of_memory)?;
    let own = budget.clone();
    let pause_later = lua.create_function(move |_, ()| {
        own.pause_later();
        Ok(())
    })?;
    natives.raw_set("pause_later", pause_later)?;
    let own = random.clone();
    natives.raw_set("random", lua.create_function(move |_, ()| Ok(own.next()))?)?;
    let own = random.clone();
    let seed = lua.create_function(move |_, seed: f64| {
        own.seed(crate::number::truncated(seed) as i32);
        Ok(())
    })?;
    natives.raw_set("seed", seed)?;
    let own = resp3.clone();
    let set_resp = lua.create_function(move |_, version: f64| {
        own.store(version == 3.0, Ordering::Relaxed);
        Ok(())
    })?;
    natives.raw_set("set_resp", set_resp)?;
    let sha1 = lua.create_function(|lua, text: mlua::String| {
        lua.create_string(Sha1::of(&text.as_bytes()).as_bytes())
    })?;
    natives.raw_set("sha1", sha1)?;
    let own = budget.clone();
    let load = lua.create_function(move |lua, (text, name): (mlua::String, mlua::String)| {
        own.spend(STEPS_TO_COMPILE + STEPS_TO_COMPILE_A_BYTE * text.as_bytes().len() as u64)?;
        Ok(match load(lua, &text.as_bytes(), &name.to_string_lossy()) {
            Ok(function) => (Value::Function(function), Value::Nil),
            Err(words) => (Value::Nil, Value::String(lua.create_string(words)?)),
        })
    })?;
    natives.raw_set("load", load)?;
    natives.raw_set("null", Value::NULL)
}

pub fn text(values: &[Value], at: usize) -> Result<Vec<u8>, Problem> {
    match values.get(at) {
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(value) if number(value).is_some() => {
            Ok(crate::number::general(number(value).unwrap_or_default(), 14).into_bytes())
        }
        value => {
            let got = value.map_or("no value", Value::type_name);
            Err(Problem::Argument(at + 1, format!("string expected, got {got}")))
        }
    }
}

pub fn numeric(values: &[Value], at: usize) -> Result<f64, Problem> {
    let value = values.get(at);
    let parsed = match value {
        Some(Value::String(text)) => text.to_str().ok().and_then(|text| text.trim().parse().ok()),
        value => value.and_then(number),
    };
    parsed.ok_or_else(|| {
        let got = value.map_or("no value", Value::type_name);
        Problem::Argument(at + 1, format!("number expected, got {got}"))
    })
}

fn string(lua: &Lua, bytes: impl AsRef<[u8]>) -> Result<Vec<Value>, Problem> {
    Ok(vec![Value::String(lua.create_string(bytes)?)])
}

fn one_argument(values: &[Value]) -> Result<&Value, Problem> {
    match values {
        [value] => Ok(value),
        _ => Err(Problem::Argument(1, "expected 1 argument".into())),
    }
}

fn json_encode(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let settings = lua.app_data_ref::<Arc<json::Settings>>().expect("it was set at the start");
    string(lua, json::encode(budget, &settings, one_argument(&values)?)?)
}

fn json_decode(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    one_argument(&values)?;
    let settings = lua.app_data_ref::<Arc<json::Settings>>().expect("it was set at the start");
    Ok(vec![json::decode(lua, budget, &settings, &text(&values, 0)?)?])
}

fn msgpack_pack(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    if values.is_empty() {
        return Err("bad argument #0 to 'pack' (MessagePack pack needs input.)".into());
    }
    string(lua, msgpack::pack(budget, &values)?)
}

fn msgpack_unpack(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    Ok(msgpack::unpack(lua, budget, &text(&values, 0)?, (0, usize::MAX))?.0)
}

fn msgpack_unpack_one(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    unpack_some(lua, budget, &values, 1, values.get(1).is_some().then_some(1))
}

fn msgpack_unpack_limit(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let most = numeric(&values, 1)?;
    // Without a bound and from the beginning, it is all of them.
    let most = if most == 0.0 && values.len() < 3 { f64::MAX } else { most };
    unpack_some(lua, budget, &values, most.max(0.0) as usize, values.get(2).is_some().then_some(2))
}

/// The place to go on from, -1 at the end, and the values.
fn unpack_some(
    lua: &Lua,
    budget: &Budget,
    values: &[Value],
    most: usize,
    offset: Option<usize>,
) -> Result<Vec<Value>, Problem> {
    let bytes = text(values, 0)?;
    let offset = offset.map_or(Ok(0.0), |at| numeric(values, at))?;
    if offset < 0.0 {
        let words = format!("Invalid request to unpack with offset of {offset} and limit of {most}.");
        return Err(Problem::Words(words));
    }
    if offset as usize > bytes.len() {
        let words = format!("Start offset {offset} greater than input length {}.", bytes.len());
        return Err(Problem::Words(words));
    }
    let (mut found, next) = msgpack::unpack(lua, budget, &bytes, (offset as usize, most))?;
    let next = if next < bytes.len() { next as f64 } else { -1.0 };
    found.insert(0, Value::Number(next));
    Ok(found)
}

fn struct_pack(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let format = text(&values, 0)?;
    string(lua, packed::pack(budget, &format, &values)?)
}

fn struct_unpack(lua: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let (format, data) = (text(&values, 0)?, text(&values, 1)?);
    let from = if values.len() > 2 { numeric(&values, 2)? } else { 1.0 };
    if from < 1.0 {
        return Err(Problem::Argument(3, "offset must be 1 or greater".into()));
    }
    packed::unpack(lua, budget, &format, &data, from as usize - 1)
}

fn struct_size(_: &Lua, _: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    Ok(vec![Value::Number(packed::size(&text(&values, 0)?)? as f64)])
}

/// The operation, which the prelude puts in front, and its operands, of which there are some.
fn operation(values: &[Value], at_least: usize) -> Result<(String, Vec<f64>), Problem> {
    let name = String::from_utf8_lossy(&text(values, 0)?).into_owned();
    let operands = &values[1..];
    let count = operands.len().max(at_least);
    let numbers: Result<Vec<f64>, Problem> = (0..count).map(|at| numeric(operands, at)).collect();
    let numbers = numbers.map_err(|problem| match problem {
        Problem::Argument(at, what) => Problem::Words(format!("bad argument #{at} to '{name}' ({what})")),
        problem => problem,
    });
    Ok((name, numbers?))
}

fn bit_fold(_: &Lua, _: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let (name, numbers) = operation(&values, 1)?;
    Ok(vec![Value::Number(bits::fold(&name, &numbers).into())])
}

fn bit_shift(_: &Lua, _: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let (name, numbers) = operation(&values, 2)?;
    let shifted = bits::shift(&name, numbers[0], numbers[1]);
    Ok(vec![Value::Number(shifted.into())])
}

fn bit_one(_: &Lua, _: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let (name, numbers) = operation(&values, 1)?;
    let bits = bits::bits(numbers[0]);
    let answer = match name.as_str() {
        "bnot" => !bits,
        "bswap" => bits.swap_bytes(),
        _ => bits,
    };
    Ok(vec![Value::Number(answer.into())])
}

fn bit_hex(lua: &Lua, _: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let digits = if values.len() > 1 { Some(numeric(&values, 1)?) } else { None };
    string(lua, bits::hex(numeric(&values, 0)?, digits))
}

/// Where a text stands in another one from a place on, counted from one; in time linear in both.
fn find_plain(_: &Lua, budget: &Budget, values: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let (text, wanted) = (text(&values, 0)?, text(&values, 1)?);
    let from = numeric(&values, 2)? as usize;
    budget.spend_bytes(8 * (text.len() + wanted.len()))?;
    // How long the beginning of `wanted` is that ends at each of its places.
    let mut borders = vec![0; wanted.len()];
    let mut length = 0;
    for at in 1..wanted.len() {
        while length > 0 && wanted[at] != wanted[length] {
            length = borders[length - 1];
        }
        length += usize::from(wanted[at] == wanted[length]);
        borders[at] = length;
    }
    let mut matched = 0;
    for (at, byte) in text.iter().enumerate().skip(from - 1) {
        while matched > 0 && wanted[matched] != *byte {
            matched = borders[matched - 1];
        }
        matched += usize::from(wanted[matched] == *byte);
        if matched == wanted.len() {
            let begin = at + 2 - matched;
            return Ok(vec![Value::Number(begin as f64), Value::Number((at + 1) as f64)]);
        }
    }
    Ok(vec![Value::Nil])
}
