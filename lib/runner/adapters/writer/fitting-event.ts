import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { fittingText } from './long-text';

/** What an event may hold: well below what a record may, whose envelope takes its own share. */
const MOST: Measure = { units: 160 * 1024, values: 10_000, depth: 48 };
/** In bytes of JSON, for what has more units than could take as much in the worst case. */
const MOST_BYTES = 960 * 1024;

interface Measure {
  /** UTF-16 units of all names and texts; JSON writes each in at most six bytes. */
  units: number;
  values: number;
  depth: number;
}

/** How what does not fit is cut down: the first of these that is enough. */
const CUTS = [
  { text: 32 * 1024, entries: 1_000, depth: 40 },
  { text: 4 * 1024, entries: 200, depth: 16 },
  { text: 1024, entries: 40, depth: 8 },
  { text: 2 * MAX_ID_LENGTH, entries: 5, depth: 4 },
] as const;

const IDS = ['messageId', 'parentMessageId', 'toolCallId', 'subagentRunId', 'runId', 'parentRunId'] as const;
const VALUE_IDS = ['task_id', 'run_id', 'tool_use_id', 'parent_task_id'] as const;

/**
 * An event that the server takes and shows, whatever the agent has put into it: ids that are ids, and in all no more than
 * a record holds. One that is so already stays the same object.
 */
export function fittingEvent(event: AgUiEvent): AgUiEvent {
  const named = withIds(event);
  if (fits(named)) return named;
  let cut: AgUiEvent = named;
  for (const { text, entries, depth } of CUTS) {
    cut = cutDown(named, text, entries, depth) as AgUiEvent;
    if (fits(cut)) return cut;
  }
  return cut;
}

/** The same long id is always the same short one; two that differ stay two. */
export function fittingId(id: string): string {
  if (id.length <= MAX_ID_LENGTH) return id;
  let hash = 0xcbf29ce484222325n;
  for (let at = 0; at < id.length; at += 1)
    hash = BigInt.asUintN(64, (hash ^ BigInt(id.charCodeAt(at))) * 0x100000001b3n);
  return `${truncateText(id, 128)}~${hash.toString(16)}`;
}

function withIds(event: AgUiEvent): AgUiEvent {
  const { value } = event;
  const named = idsIn(event, IDS);
  if (typeof value !== 'object' || value === null) return named;
  const known = idsIn(value as Record<string, unknown>, VALUE_IDS);
  return known === value ? named : { ...named, value: known };
}

function idsIn<Whole extends Record<string, unknown>>(whole: Whole, names: readonly string[]): Whole {
  const isLong = (id: unknown) => typeof id === 'string' && id.length > MAX_ID_LENGTH;
  const long = names.filter((name) => isLong(whole[name]));
  if (long.length === 0) return whole;
  return { ...whole, ...Object.fromEntries(long.map((name) => [name, fittingId(String(whole[name]))])) };
}

function fits(event: AgUiEvent): boolean {
  const left = { ...MOST };
  if (takes(event, left, 0)) return true;
  // A text without anything that JSON has to escape takes a byte a unit.
  if (left.values < 0 || left.depth < 0 || left.units < -MOST_BYTES) return false;
  return new TextEncoder().encode(JSON.stringify(event)).length <= MOST_BYTES;
}

/** @param left remaining room; below 0 once it is used up */
function takes(value: unknown, left: Measure, depth: number): boolean {
  left.values -= 1;
  if (typeof value === 'string') left.units -= value.length;
  else if (typeof value === 'object' && value !== null) {
    if (depth >= MOST.depth) left.depth = -1;
    if (left.values < 0 || left.depth < 0) return false;
    for (const [name, one] of Object.entries(value)) {
      if (!Array.isArray(value)) left.units -= name.length;
      takes(one, left, depth + 1);
      if (left.values < 0 || left.depth < 0) return false;
    }
  }
  return left.units >= 0;
}

function cutDown(value: unknown, text: number, entries: number, depth: number): unknown {
  if (typeof value === 'string') return value.length <= text ? value : fittingText(value, text);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  const inner = (one: unknown) => cutDown(one, text, entries, depth - 1);
  if (Array.isArray(value)) {
    const left = value.length - entries;
    return left <= 0 ? value.map(inner) : [...value.slice(0, entries).map(inner), `… ${left} more`];
  }
  const all = Object.entries(value);
  // What an event is for stands first in it: its type, its name, its ids.
  const kept = all.slice(0, Math.max(entries, 12)).map(([name, one]) => [fittingText(name, 256), inner(one)]);
  if (all.length > kept.length) kept.push(['…', `${all.length - kept.length} more`]);
  return Object.fromEntries(kept);
}
