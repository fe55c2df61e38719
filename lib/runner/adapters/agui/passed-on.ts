import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, isObject, listOf } from '@interlude/protocol/fields';
import { MAX_JSON_DEPTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { fittingText, jsonBytes } from '../writer/long-text';

/** What an event may take as JSON, so that its record fits, and how deep it may go, so that its request does. */
const MAX_EVENT_BYTES = 768 * 1024;
const MAX_EVENT_DEPTH = MAX_JSON_DEPTH - 8;
/** Of what is too much, as JSON. */
const MAX_QUOTED = 4 * 1024;

/** What Interlude itself says by these names: an agent's own events are not taken for it. */
const OURS: ReadonlySet<string> = new Set(Object.values(CUSTOM).filter((name) => !name.startsWith('task:')));

/**
 * Events that are stored as they came: state, steps, activities, what a server means by its own names. One that no record
 * can hold is told in parts, or by its beginning.
 */
export function passedOn(event: Fields): AgUiEvent[] {
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
      return [fits(alone) ? alone : tooMuch(alone)];
    });
  }
  return [tooMuch(kept)];
}

/** What is no event. */
export function unreadable(what: unknown): AgUiEvent {
  const event = typeof what === 'string' ? fittingText(what, MAX_QUOTED) : what;
  const raw: AgUiEvent = { type: 'RAW', event, source: 'agui' };
  return fits(raw) ? raw : tooMuch(raw);
}

function tooMuch(event: AgUiEvent): AgUiEvent {
  const beginning = depthOf(event) > MAX_EVENT_DEPTH ? '' : truncateText(JSON.stringify(event), MAX_QUOTED);
  return { type: 'CUSTOM', name: 'agui:too-much', value: { type: event.type, beginning } };
}

function shortened(message: unknown): unknown {
  if (!isObject(message) || typeof message.content !== 'string') return message;
  return { ...message, content: fittingText(message.content, MAX_EVENT_BYTES / 2) };
}

function fits(event: AgUiEvent): boolean {
  if (depthOf(event) > MAX_EVENT_DEPTH) return false;
  const json = JSON.stringify(event);
  return json.length <= MAX_EVENT_BYTES && (json.length * 3 <= MAX_EVENT_BYTES || jsonBytes(json) <= MAX_EVENT_BYTES);
}

/** Nothing else here can take it: what reads or writes JSON goes into it level by level. */
export function isTooDeep(value: unknown): boolean {
  return depthOf(value) > MAX_EVENT_DEPTH;
}

/** Without recursion: it may be as deep as a sender likes. */
function depthOf(value: unknown): number {
  let [level, depth]: [unknown[], number] = [[value], 0];
  while (level.length > 0 && depth <= MAX_EVENT_DEPTH) {
    depth += 1;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return depth;
}
