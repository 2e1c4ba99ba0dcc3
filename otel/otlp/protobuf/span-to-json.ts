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
    switch (reader.tag) {
      case SPAN.traceId:
        ids += `"traceId":"${reader.hex()}",`;
        break;
      case SPAN.spanId:
        ids += `"spanId":"${reader.hex()}",`;
        break;
      case SPAN.traceState:
        ids += `"traceState":${quote(reader.text())},`;
        break;
      case SPAN.parentSpanId:
        ids += `"parentSpanId":"${reader.hex()}",`;
        break;
      case SPAN.name:
        name = quote(reader.text());
        break;
      case SPAN.kind:
        kind = reader.varint();
        break;
      case SPAN.startTime:
        times += `"startTimeUnixNano":"${reader.fixed64()}",`;
        break;
      case SPAN.endTime:
        times += `"endTimeUnixNano":"${reader.fixed64()}",`;
        break;
      case SPAN.attributes:
        attributes += readKeyValue(reader, reader.message());
        break;
      case SPAN.droppedAttributesCount:
        droppedAttributes = reader.varint();
        break;
      case SPAN.events:
        events += readEvent(reader, reader.message());
        break;
      case SPAN.droppedEventsCount:
        droppedEvents = reader.varint();
        break;
      case SPAN.links:
        links += readLink(reader, reader.message());
        break;
      case SPAN.droppedLinksCount:
        droppedLinks = reader.varint();
        break;
      case SPAN.status:
        status = readStatus(reader, reader.message());
        break;
      case SPAN.flags:
        flags = reader.fixed32();
        break;
      default:
        reader.skip();
    }
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
    switch (reader.tag) {
      case EVENT.time:
        time = reader.fixed64();
        break;
      case EVENT.name:
        name = quote(reader.text());
        break;
      case EVENT.attributes:
        attributes += readKeyValue(reader, reader.message());
        break;
      case EVENT.droppedAttributesCount:
        droppedAttributes = reader.varint();
        break;
      default:
        reader.skip();
    }
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
    switch (reader.tag) {
      case LINK.traceId:
        traceId = reader.hex();
        break;
      case LINK.spanId:
        spanId = reader.hex();
        break;
      case LINK.attributes:
        attributes += readKeyValue(reader, reader.message());
        break;
      case LINK.droppedAttributesCount:
        droppedAttributes = reader.varint();
        break;
      case LINK.flags:
        flags = reader.fixed32();
        break;
      default:
        reader.skip();
    }
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
