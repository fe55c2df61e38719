import type { AgUiEvent } from '../ag-ui';
import type { Position } from '../position';

/** An event with its position in the log: what every projection folds. */
export interface EventEntry {
  position: Position;
  /** The runner's clock, epoch milliseconds. */
  occurredAt: number;
  /** The server's clock, epoch milliseconds. */
  receivedAt: number;
  event: AgUiEvent;
}
