import { MAX_ID_LENGTH } from '@/lib/protocol/limits';
import type { RequestItem } from '@/lib/protocol/read-models';
import type { InputGate } from './request-input';

/** A tool's name is shown whole up to here. No tool has a longer one, and nobody could say whether they have read it. */
export const TOOL_NAME_CHARACTERS = MAX_ID_LENGTH;

const UNSEEN: Record<InputGate, string | null> = {
  open: null,
  scroll: 'Scroll through all of the input to allow it.',
  folded: 'Show all of the input, to its end, to allow it.',
};

/** Why a request can't be allowed yet by who has only what they see to go by, else null. */
export function unseenWords({ toolName }: Pick<RequestItem, 'toolName'>, gate: InputGate): string | null {
  if (toolName === null || toolName.length <= TOOL_NAME_CHARACTERS) return UNSEEN[gate];
  return 'The name of the tool is too long to be shown whole. Deny it, or answer where the agent runs.';
}
