import type { Turn } from '@interlude/protocol/read-models';
import { plainWords } from '@/components/ui/plain-words';
import { inQuotes } from '@/components/ui/verbatim';
import type { TranscriptSlots } from './transcript-slots';
import { turnName } from './turn-cause';

const MOST_CHARACTERS = 48;

/** A turn's name, told apart from others of its kind by what was asked: `User turn “Build it”`. */
export function turnTitle(turn: Turn, slots: Pick<TranscriptSlots, 'findTask' | 'outcomeOf'>): string {
  const name = turnName(turn, slots);
  if (turn.kind !== 'user') return name;
  const asked = turn.items.find((item) => item.kind === 'message' && item.role === 'user');
  const line = asked?.kind === 'message' ? plainWords(asked.text) : '';
  if (!line) return name;
  const characters = [...line];
  const short = characters.length > MOST_CHARACTERS ? `${characters.slice(0, MOST_CHARACTERS).join('').trim()}…` : line;
  return `${name} ${inQuotes(short)}`;
}
