import type { AgUiEvent } from '@interlude/protocol/ag-ui';

/** Where the parts of the adapter put their events; the adapter adds the time. */
export type Emit = (event: AgUiEvent) => void;

export function custom(name: string, value: object): AgUiEvent {
  return { type: 'CUSTOM', name, value };
}
