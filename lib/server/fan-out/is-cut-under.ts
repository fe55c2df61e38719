import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { positionToNumber } from '@interlude/protocol/position';
import type { Row } from '@/lib/server/event-log/rows';

/**
 * Whether a row tells that turns were removed which a reader may have been told in part: it has everything up to `whole`,
 * and what it has read since was read while they went. It has to resume, which is then a gap.
 */
export function isCutUnder(row: Row, whole: number): boolean {
  if (row.kind !== 'event' || row.name !== CUSTOM.removed) return false;
  const { removed } = (JSON.parse(row.payload) as AgUiEvent).metadata?.interlude ?? {};
  return removed !== undefined && positionToNumber(removed.upTo) > whole;
}
