import type { Pace } from '@/db/next-turn';
import { customName, customValue, pick, pickText } from '@/lib/projections/event-fields';
import { type OpenRequest, OpenRequests, requestTitle } from '@/lib/projections/open-requests';
import type { Placement } from '@/lib/projections/placement';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import { MAX_CAPTION } from '@/lib/protocol/limits';
import type { Position } from '@/lib/protocol/position';
import { requestDigest } from '@/lib/protocol/request-digest';

/** A request that asks anew: no answer given before is meant for it. */
export interface Opening {
  agentId: string;
  sessionId: string;
  requestId: string;
  digest: string;
}

/**
 * Writes the digest and the position of its opening into every `request:opened`, in place of whatever its producer said
 * there. One that is told again as it was, while it is open, has those of its first telling: who read that may answer.
 *
 * @param before what the session's agent waited for before these events
 */
export async function stampRequests(
  { sessionId, agentId }: { sessionId: string; agentId: string },
  before: readonly OpenRequest[],
  placements: readonly Placement[],
  pace: Pace,
): Promise<Opening[]> {
  if (!placements.some(({ entry }) => customName(entry.event) === CUSTOM.requestOpened)) return [];
  const open = new OpenRequests(before);
  const openings: Opening[] = [];
  for (const placement of placements) {
    const { entry } = placement;
    const value = customValue(entry.event);
    const requestId = pickText(value, 'request_id', 'requestId');
    if (customName(entry.event) === CUSTOM.requestOpened && requestId !== null) {
      const asked = {
        sessionId,
        requestId,
        tool: pickText(value, 'tool_name', 'toolName'),
        input: pick(value, 'input'),
      };
      const at = (position: Position) => ({ digest: requestDigest({ ...asked, position }), opened_position: position });
      const known = open.get(requestId);
      const again = isAskedAlike(known, value) ? at(known.openedPosition) : null;
      const isToldAgain = again !== null && again.digest === known?.digest;
      const stamp = isToldAgain ? again : at(entry.position);
      if (!isToldAgain) openings.push({ agentId, sessionId, requestId, digest: stamp.digest });
      entry.event.value = { ...value, ...stamp };
    }
    open.apply(placement);
    if (pace.isDue) await pace.rest();
  }
  return openings;
}

/**
 * Of a question, and of what has no input, people answer the title: another title is another request. One that is too long
 * to be remembered whole may be another each time.
 */
function isAskedAlike(known: OpenRequest | undefined, value: Record<string, unknown>): known is OpenRequest {
  if (known === undefined) return false;
  const isQuestion = value.kind === 'question';
  if (isQuestion !== (known.kind === 'question')) return false;
  const isInTitle = isQuestion || pick(value, 'input') === undefined;
  const title = pickText(value, 'title') ?? '';
  return !isInTitle || (title.length <= MAX_CAPTION && known.title === requestTitle(value));
}
