import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { RequestItem } from '@interlude/protocol/read-models';
import type { InputGate } from './request-input';

/**
 * A tool's name is shown whole up to here. No tool has a longer one, and nobody could say whether they have read it.
 */
export const TOOL_NAME_CHARACTERS = MAX_ID_LENGTH;

const UNSEEN: Record<InputGate, string | null> = {
  open: null,
  scroll: 'Scroll through all of the input to allow it.',
  folded: 'Show all of the input, to its end, to allow it.',
};

/** A title is shown up to here. What runs is the input, but for a request that came without one. */
export const TITLE_CHARACTERS = 400;

/**
 * Why a person who has only what they see to go by can't allow a request yet, else null.
 *
 * @param gate null if it came without an input
 */
export function unseenWords(
  { toolName, title }: Pick<RequestItem, 'toolName' | 'title'>,
  gate: InputGate | null,
): string | null {
  if (toolName !== null && toolName.length > TOOL_NAME_CHARACTERS) return tooLong('The name of the tool');
  if (gate !== null) return UNSEEN[gate];
  return title.length > TITLE_CHARACTERS ? tooLong('What the agent asks for') : null;
}

function tooLong(what: string): string {
  return `${what} is too long to be shown whole. Deny it, or answer where the agent runs.`;
}
