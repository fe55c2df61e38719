import { glyphOf, STANDING_WORD, STANDINGS, standingOf } from '@/components/sessions/session-words';
import { Glyph } from '@/components/ui/glyph';
import type { SessionSummary } from '@/lib/protocol/read-models';

/**
 * The most urgent state of an agent's sessions. Those that are loaded are the most urgent ones: how many are in that
 * state is said only where all are.
 */
export function AgentState({ sessions = [], of }: { sessions: readonly SessionSummary[] | undefined; of: number }) {
  const standing = STANDINGS.find((candidate) => sessions.some((session) => standingOf(session) === candidate));
  if (standing === undefined) return null;
  const count = sessions.filter((session) => standingOf(session) === standing).length;
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name={glyphOf(standing)} className="relative top-[1.5px]" />
      {STANDING_WORD[standing]}
      {of > 1 && sessions.length >= of && <span className="tabular text-ink-3">{`${count} of ${of}`}</span>}
    </span>
  );
}
