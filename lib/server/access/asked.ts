import type { Principal } from './principal';
import type { ShownDigests } from './shown-digests';

/**
 * A request as its handler gets it: the ids in the path, the query and body as parsed by the route's schemas, and who
 * sends it.
 *
 * @typeParam Id the names of the ids
 */
export type Asked<Id extends string = never, Given = unknown> = Given & {
  ids: Readonly<Record<Id, string>>;
  request: Request;
  principal: Principal;
  /** Digests in the form this sender is shown and sends back. */
  digests: ShownDigests;
  /** Calls back once if the sender may no longer come in, or ask for this, while the answer lasts. @returns how to stop that */
  whenOver: (onEnd: () => void) => () => void;
};
