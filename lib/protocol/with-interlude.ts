import type { AgUiEvent, InterludeMetadata } from './ag-ui';
import { fieldsOf } from './fields';
import { interludeOf } from './interlude-metadata';

/** @param more added to what the event has under `metadata.interlude`, replacing what is there by the same names */
export function withInterlude(event: AgUiEvent, more: InterludeMetadata): AgUiEvent {
  const metadata = fieldsOf(event.metadata);
  const before = fieldsOf(metadata.interlude) as InterludeMetadata;
  return { ...event, metadata: { ...metadata, interlude: { ...before, ...more } } };
}

const MARKS = [
  'ofSnapshot',
  'derived',
  'replaces',
  'presumed',
  'again',
  'taskPosition',
  'origin',
  'delivery',
  'clientId',
  'removed',
] as const;
const NO_MARKS = Object.fromEntries(MARKS.map((mark) => [mark, undefined]));

/**
 * Removes the marks that only the server sets: parts of a snapshot, derived or presumed events, replacements and
 * repetitions, a task's position, removed turns, and messages that came through the server.
 */
export function unmarked(event: AgUiEvent): AgUiEvent {
  const said = interludeOf(event);
  return MARKS.some((mark) => said[mark] !== undefined) ? withInterlude(event, NO_MARKS) : event;
}
