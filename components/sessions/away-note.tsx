'use client';

import type { AgentSummary, SessionAway, SessionSummary } from '@interlude/protocol/read-models';
import { hasOpenWork, wentSilent } from '@interlude/protocol/session-predicates';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { CopyButton } from '@/components/ui/copy-button';
import { Glyph } from '@/components/ui/glyph';
import { Name, Quoted } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { Evidence } from './state-why';
import { useCommandSetting } from './command-setting';

/** What it means that a session's runner has gone, on what evidence, and what to do about it. */
export function AwayNote({ session, agent }: { session: SessionSummary; agent: AgentSummary | null }) {
  const { away } = session;
  const setting = useCommandSetting();
  if (away === null) return null;
  const command = commandOf(session, agent, setting);
  return (
    <div role="status" className="shrink-0 border-waiting border-t bg-waiting-soft">
      <div className="mx-auto max-w-[960px] px-4 py-2 text-xs sm:pr-6 sm:pl-[86px]">
        <p className="flex items-baseline gap-2">
          <Glyph name="lost" className="relative top-[1.5px]" />
          <span className="min-w-0">
            <span className="font-medium text-ink">{titleOf(away, agent)}</span> <Evidence away={away} />.{' '}
            <span className="text-ink-2 [overflow-wrap:anywhere]">
              {away.isUnreachable && away.reason !== undefined && (
                <>
                  Its host reports: <Quoted text={away.reason} />.{' '}
                </>
              )}
              {meaningOf(session, away)}
            </span>
          </span>
        </p>
        {command !== null && (
          <p className="mt-0.5 flex flex-wrap items-baseline gap-x-2 pl-5 text-ink-2">
            {away.agentGoesOn ? 'To watch it again' : 'To go on'}, on its machine, in Interlude’s folder:
            <code className="min-w-0 break-all font-mono text-2xs text-ink">
              <Name text={command} most={Number.POSITIVE_INFINITY} signs={Number.POSITIVE_INFINITY} />
            </code>
            <CopyButton label="Copy command" text={() => command} className="self-center" />
          </p>
        )}
      </div>
    </div>
  );
}

/** Hooks only: their runner watches terminals and needs no arguments to be started again. */
function isInTerminal(agent: AgentSummary | null): boolean {
  return agent?.kind === 'hooks';
}

function titleOf({ agentGoesOn, isSilent, isUnreachable }: SessionAway, agent: AgentSummary | null): string {
  if (isUnreachable) return 'Agent unreachable';
  if (agentGoesOn && isInTerminal(agent)) return 'Its terminal is not watched';
  return isSilent ? 'Its agent is silent' : 'Its runner has gone';
}

function meaningOf(session: SessionSummary, away: SessionAway): string {
  const { agentGoesOn, isSilent, isUnreachable } = away;
  if (isUnreachable) {
    const closed = wentSilent(session) ? 'What was running has been closed. ' : '';
    return `${closed}Restart the agent where it runs. The session continues once it answers.`;
  }
  if (agentGoesOn) return 'The agent goes on unseen. Start its runner again to see what it does.';
  if (hasOpenWork(session)) {
    return `${isSilent ? 'It may have ended.' : 'The agent most likely ended with it.'} What is shown as under way may be over.`;
  }
  return isSilent ? 'Nothing was under way.' : 'Nothing was under way. What is written here waits until it is back.';
}

/** How our own runners are started again; of others only their people know. */
function commandOf(session: SessionSummary, agent: AgentSummary | null, setting: string): string | null {
  const program = `${setting}npm run -s interlude --`;
  if (isInTerminal(agent)) return `${program} runner hooks`;
  // A demo agent goes on with the demo, or not at all.
  if (agent?.kind !== 'claude' || agent.status?.source === 'demo') return null;
  // By its name, as which it has the session, and in its own folder, not in the one where the command is pasted.
  const folder = agent.status?.cwd;
  const words = ['--agent', agent.id, ...(typeof folder === 'string' ? ['--cwd', folder] : []), '--resume', session.id];
  if (!words.every((word, at) => at % 2 === 0 || canBeWritten(word))) return null;
  return `${program} runner claude ${words.map(shellWord).join(' ')}`;
}

/** What comes from elsewhere, in a command for a shell: it may be a word there, but no option and no key press. */
function canBeWritten(word: string): boolean {
  return !word.startsWith('-') && nameText(word) === word;
}
