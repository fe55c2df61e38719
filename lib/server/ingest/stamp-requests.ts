import {
  CUSTOM,
  customName,
  customValue,
  pick,
  pickId,
  pickText,
  readRequestOptions,
} from '@interlude/protocol/event-fields';
import { MAX_CAPTION } from '@interlude/protocol/limits';
import type { Position } from '@interlude/protocol/position';
import { type OpenRequest, OpenRequests, requestTitle } from '@interlude/protocol/projections/open-requests';
import type { Placement } from '@interlude/protocol/projections/placement';
import { requestDigest } from '@interlude/protocol/request-digest';
import type { Yielder } from '@/db/yield-to-loop';

/** A newly opened request. No earlier answer applies to it. */
export interface Opening {
  agentId: string;
  sessionId: string;
  requestId: string;
  digest: string;
}

/**
 * Writes the digest and the opening position into each `request:opened`, overwriting any the producer sent. A request
 * that is repeated unchanged while open keeps its first stamp, so answers to it stay valid.
 *
 * @param before the requests that were open before these events
 */
export async function stampRequests(
  { sessionId, agentId, alias }: { sessionId: string; agentId: string; alias: string | null },
  before: readonly OpenRequest[],
  placements: readonly Placement[],
  yielder: Yielder,
): Promise<Opening[]> {
  if (!placements.some(({ entry }) => customName(entry.event) === CUSTOM.requestOpened)) return [];
  const open = new OpenRequests(before);
  const openings: Opening[] = [];
  for (const placement of placements) {
    const { entry } = placement;
    const value = customValue(entry.event);
    const requestId = pickId(value, 'request_id', 'requestId');
    if (customName(entry.event) === CUSTOM.requestOpened && requestId !== null) {
      const request = {
        // The runner computes the digest from the session id that it knows.
        sessionId: alias ?? sessionId,
        requestId,
        tool: pickText(value, 'tool_name', 'toolName'),
        input: pick(value, 'input'),
        options: value.kind === 'question' ? [] : readRequestOptions(value.options),
      };
      const at = (position: Position) => ({
        digest: requestDigest({ ...request, position }),
        opened_position: position,
      });
      const known = open.get(requestId);
      const again = isSameQuestion(known, value) ? at(known.openedPosition) : null;
      const isRepeated = again !== null && again.digest === known?.digest;
      const stamp = isRepeated ? again : at(entry.position);
      if (!isRepeated) openings.push({ agentId, sessionId, requestId, digest: stamp.digest });
      entry.event.value = { ...value, ...stamp };
    }
    open.apply(placement);
    if (yielder.isDue) await yielder.yieldIfDue();
  }
  return openings;
}

/**
 * Compares a request with the open one, except for its input. People answer the title of a question, or of a request
 * without input, so a different title makes a different request. A title too long to be stored whole counts as
 * different.
 */
function isSameQuestion(known: OpenRequest | undefined, value: Record<string, unknown>): known is OpenRequest {
  if (known === undefined) return false;
  const isQuestion = value.kind === 'question';
  if (isQuestion !== (known.kind === 'question')) return false;
  const isInTitle = isQuestion || pick(value, 'input') === undefined;
  const title = pickText(value, 'title') ?? '';
  return !isInTitle || (title.length <= MAX_CAPTION && known.title === requestTitle(value));
}
