import type { ServedEvent } from '@interlude/protocol/ag-ui';

/** An event as strict clients take it. */
export type StrictEvent = ServedEvent;

/** Which of the clients' vocabularies is spoken: 1.0 says so in its input, and those before it say nothing. */
export type Dialect = '1.0' | '0.0.59';

/** A run that ended because it waits for a person. `responseSchema` is JSON Schema, `expiresAt` ISO 8601. */
export interface Interrupt {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
  expiresAt?: string;
  metadata?: Record<string, unknown>;
}

export type Outcome =
  | { type: 'success' }
  | { type: 'cancelled' }
  | { type: 'interrupt'; interrupts: readonly Interrupt[] };
