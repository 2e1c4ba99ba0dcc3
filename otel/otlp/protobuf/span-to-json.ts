import { MalformedProtobufError, type ProtobufReader, readMessage } from '#otel/encoding';
import { quote, readKeyValue, toList } from './attributes-to-json.ts';
import { EVENT, LINK, SCOPE_SPANS, SPAN, STATUS } from './otlp-tags.ts';

/**
 * Converts an encoded span to OTLP JSON (hex ids; nanoseconds and int64 as strings): the span, and after commas those of
 * its attempts. Every member is there, lists that are empty and counts that are zero included. Null for anything that is
 * no encoded span.
 */
export function toSpanJson(encodedSpan: Uint8Array): string | null {
  return readMessage(encodedSpan, (reader, end) => {
    let json = '';
    while (reader.next(end)) {
      if (reader.tag === SCOPE_SPANS.span)
        json += `${json === '' ? '' : ','}${readSpan(reader, reader.message())}`;
      else throw new MalformedProtobufError();
    }
    return json === '' ? null : json;
  });
}

function readSpan(reader: ProtobufReader, end: number): string {
  let ids = '';
  let name = '""';
  let kind = 0;
  let times = '';
  let attributes = '';
  let droppedAttributes = 0;
  let events = '';
  let droppedEvents = 0;
  let links = '';
  let droppedLinks = 0;
  let status = '{"code":0}';
  let flags = 0;
  while (reader.next(end)) {
    if (reader.tag === SPAN.traceId) ids += `"traceId":"${reader.hex()}",`;
    else if (reader.tag === SPAN.spanId) ids += `"spanId":"${reader.hex()}",`;
    else if (reader.tag === SPAN.traceState) ids += `"traceState":${quote(reader.text())},`;
    else if (reader.tag === SPAN.parentSpanId) ids += `"parentSpanId":"${reader.hex()}",`;
    else if (reader.tag === SPAN.name) name = quote(reader.text());
    else if (reader.tag === SPAN.kind) kind = reader.varint();
    else if (reader.tag === SPAN.startTime) times += `"startTimeUnixNano":"${reader.fixed64()}",`;
    else if (reader.tag === SPAN.endTime) times += `"endTimeUnixNano":"${reader.fixed64()}",`;
    else if (reader.tag === SPAN.attributes) attributes += readKeyValue(reader, reader.message());
    else if (reader.tag === SPAN.droppedAttributesCount) droppedAttributes = reader.varint();
    else if (reader.tag === SPAN.events) events += readEvent(reader, reader.message());
    else if (reader.tag === SPAN.droppedEventsCount) droppedEvents = reader.varint();
    else if (reader.tag === SPAN.links) links += readLink(reader, reader.message());
    else if (reader.tag === SPAN.droppedLinksCount) droppedLinks = reader.varint();
    else if (reader.tag === SPAN.status) status = readStatus(reader, reader.message());
    else if (reader.tag === SPAN.flags) flags = reader.fixed32();
    else reader.skip();
  }
  return (
    `{${ids}"name":${name},"kind":${kind},${times}"attributes":${toList(attributes)},` +
    `"droppedAttributesCount":${droppedAttributes},"events":${toList(events)},"droppedEventsCount":${droppedEvents},` +
    `"status":${status},"links":${toList(links)},"droppedLinksCount":${droppedLinks},"flags":${flags}}`
  );
}

/** Returns the event with a comma before it. */
function readEvent(reader: ProtobufReader, end: number): string {
  let attributes = '';
  let name = '""';
  let time = 0n;
  let droppedAttributes = 0;
  while (reader.next(end)) {
    if (reader.tag === EVENT.time) time = reader.fixed64();
    else if (reader.tag === EVENT.name) name = quote(reader.text());
    else if (reader.tag === EVENT.attributes) attributes += readKeyValue(reader, reader.message());
    else if (reader.tag === EVENT.droppedAttributesCount) droppedAttributes = reader.varint();
    else reader.skip();
  }
  return (
    `,{"attributes":${toList(attributes)},"name":${name},` +
    `"timeUnixNano":"${time}","droppedAttributesCount":${droppedAttributes}}`
  );
}

/** Returns the link with a comma before it. */
function readLink(reader: ProtobufReader, end: number): string {
  let attributes = '';
  let traceId = '';
  let spanId = '';
  let droppedAttributes = 0;
  let flags = 0;
  while (reader.next(end)) {
    if (reader.tag === LINK.traceId) traceId = reader.hex();
    else if (reader.tag === LINK.spanId) spanId = reader.hex();
    else if (reader.tag === LINK.attributes) attributes += readKeyValue(reader, reader.message());
    else if (reader.tag === LINK.droppedAttributesCount) droppedAttributes = reader.varint();
    else if (reader.tag === LINK.flags) flags = reader.fixed32();
    else reader.skip();
  }
  return (
    `,{"attributes":${toList(attributes)},"spanId":"${spanId}","traceId":"${traceId}",` +
    `"droppedAttributesCount":${droppedAttributes},"flags":${flags}}`
  );
}

function readStatus(reader: ProtobufReader, end: number): string {
  let code = 0;
  let message = '';
  while (reader.next(end)) {
    if (reader.tag === STATUS.code) code = reader.varint();
    else if (reader.tag === STATUS.message) message = reader.text();
    else reader.skip();
  }
  return `{"code":${code}${message === '' ? '' : `,"message":${quote(message)}`}}`;
}
