import type { AgUiEvent, InterludeMetadata } from './ag-ui';
import { fieldsOf } from './fields';

/** @param more added to what the event has under `metadata.interlude`, replacing what is there by the same names */
export function withInterlude(event: AgUiEvent, more: InterludeMetadata): AgUiEvent {
  const metadata = fieldsOf(event.metadata);
  const before = fieldsOf(metadata.interlude) as InterludeMetadata;
  return { ...event, metadata: { ...metadata, interlude: { ...before, ...more } } };
}
