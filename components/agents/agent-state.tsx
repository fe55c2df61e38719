import { glyphOf, STANDING_WORD } from '@/components/sessions/session-words';
import { Glyph } from '@/components/ui/glyph';
import { type AgentSummary, SESSION_STATES } from '@/lib/protocol/read-models';

/** The most urgent state of an agent's sessions, and how many of them are in it. */
export function AgentState({ agent: { sessionStates, sessionCount } }: { agent: AgentSummary }) {
  const state = SESSION_STATES.find((candidate) => sessionStates[candidate] > 0);
  if (state === undefined) return null;
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name={glyphOf(state)} className="relative top-[1.5px]" />
      {STANDING_WORD[state]}
      {sessionCount > 1 && (
        <span className="tabular text-ink-3">{`${sessionStates[state].toLocaleString('en')} of ${sessionCount.toLocaleString('en')}`}</span>
      )}
    </span>
  );
}
