import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, isObject, listOf } from '@interlude/protocol/fields';
import { MAX_JSON_DEPTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { jsonBytes, truncateWithNote } from '../writer/size-limits';

/** Limits of an event, so that its record and request fit. */
const MAX_EVENT_BYTES = 768 * 1024;
const MAX_EVENT_DEPTH = MAX_JSON_DEPTH - 8;
/** Length of the quoted beginning of an oversized event. */
const MAX_QUOTED = 4 * 1024;

/** Names reserved for Interlude: an agent's events with them get a prefix. */
const OURS: ReadonlySet<string> = new Set(Object.values(CUSTOM).filter((name) => !name.startsWith('task:')));

/** Forwards events stored unchanged: state, steps, activities, custom events. An oversized event is split or quoted. */
export function forwardedEvents(event: Fields): AgUiEvent[] {
  const { metadata, rawEvent: _, type, ...rest } = event;
  const { interlude: __, ...others } = fieldsOf(metadata);
  const kept: AgUiEvent = {
    type: truncateText(String(type), 256),
    ...rest,
    ...(Object.keys(others).length === 0 ? {} : { metadata: others }),
  };
  if (kept.type === 'CUSTOM') {
    const name = truncateText(String(rest.name ?? ''), 256);
    kept.name = OURS.has(name) || name === '' ? `agui:${name}` : name;
  }
  if (fits(kept)) return [kept];
  if (kept.type === 'MESSAGES_SNAPSHOT') {
    return listOf(event.messages).flatMap((message) => {
      const alone: AgUiEvent = { type: 'MESSAGES_SNAPSHOT', messages: [shortened(message)] };
      return [fits(alone) ? alone : oversizedEvent(alone)];
    });
  }
  return [oversizedEvent(kept)];
}

/** A RAW event for data that is no event. */
export function unreadable(what: unknown): AgUiEvent {
  const event = typeof what === 'string' ? truncateWithNote(what, MAX_QUOTED) : what;
  const raw: AgUiEvent = { type: 'RAW', event, source: 'agui' };
  return fits(raw) ? raw : oversizedEvent(raw);
}

function oversizedEvent(event: AgUiEvent): AgUiEvent {
  const beginning = depthOf(event) > MAX_EVENT_DEPTH ? '' : truncateText(JSON.stringify(event), MAX_QUOTED);
  return { type: 'CUSTOM', name: 'agui:too-much', value: { type: event.type, beginning } };
}

function shortened(message: unknown): unknown {
  if (!isObject(message) || typeof message.content !== 'string') return message;
  return { ...message, content: truncateWithNote(message.content, MAX_EVENT_BYTES / 2) };
}

function fits(event: AgUiEvent): boolean {
  if (depthOf(event) > MAX_EVENT_DEPTH) return false;
  const json = JSON.stringify(event);
  return json.length <= MAX_EVENT_BYTES && (json.length * 3 <= MAX_EVENT_BYTES || jsonBytes(json) <= MAX_EVENT_BYTES);
}

/** Deeper values would overflow recursive readers. */
export function isTooDeep(value: unknown): boolean {
  return depthOf(value) > MAX_EVENT_DEPTH;
}

/** Iterative: the depth is untrusted. */
function depthOf(value: unknown): number {
  let [level, depth]: [unknown[], number] = [[value], 0];
  while (level.length > 0 && depth <= MAX_EVENT_DEPTH) {
    depth += 1;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return depth;
}
