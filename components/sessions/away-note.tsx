'use client';

import type { AgentSummary, SessionAway, SessionSummary } from '@interlude/protocol/read-models';
import { hasOpenWork, wentSilent } from '@interlude/protocol/session-predicates';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { withoutQuotes } from '@interlude/protocol/text';
import { CopyButton } from '@/components/ui/copy-button';
import { Glyph } from '@/components/ui/glyph';
import { Name, Phrase } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { useCommandSetting } from './command-setting';
import { Evidence } from './state-why';

/** Explains a silent or gone runner: the evidence, the consequence and the command to continue. */
export function AwayNote({ session, agent }: { session: SessionSummary; agent: AgentSummary | null }) {
  const { away } = session;
  const setting = useCommandSetting();
  if (away === null) return null;
  const command = commandOf(session, agent, setting);
  return (
    <div role="status" className="shrink-0 border-waiting border-t bg-waiting-soft">
      <div className="session-column py-2 text-xs">
        <p className="flex items-baseline gap-2">
          <Glyph name="lost" className="relative top-[1.5px]" />
          <span className="min-w-0">
            <span className="font-medium text-ink">{titleOf(away, agent)}</span> <Evidence away={away} />.{' '}
            <span className="text-ink-2 [overflow-wrap:anywhere]">
              {away.isUnreachable && away.reason !== undefined && (
                <>
                  Its host reports: “<Phrase text={withoutQuotes(away.reason)} />
                  ”.{' '}
                </>
              )}
              {meaningOf(session, away)}
            </span>
          </span>
        </p>
        {command !== null && (
          <p className="mt-0.5 pl-5 text-ink-2">
            {away.agentGoesOn ? 'To follow it again' : 'To continue'}, run this on its machine, in Interlude’s folder:
            <span className="mt-1 flex items-start gap-x-3 rounded-md bg-ground px-2 py-1 sm:w-fit sm:max-w-full">
              <code className="min-w-0 flex-1 font-mono text-2xs text-ink leading-5 [overflow-wrap:anywhere]">
                <Name text={command} max={Number.POSITIVE_INFINITY} signs={Number.POSITIVE_INFINITY} />
              </code>
              <CopyButton label="Copy command" text={() => command} className="min-h-5" />
            </span>
          </p>
        )}
      </div>
    </div>
  );
}

/** True for the hooks runner, which watches terminals and restarts without arguments. */
function isInTerminal(agent: AgentSummary | null): boolean {
  return agent?.kind === 'hooks';
}

function titleOf({ agentGoesOn, isSilent, isUnreachable }: SessionAway, agent: AgentSummary | null): string {
  if (isUnreachable) return 'Agent unreachable';
  if (agentGoesOn && isInTerminal(agent)) return 'Terminal not followed';
  return isSilent ? 'No signal' : 'Runner gone';
}

function meaningOf(session: SessionSummary, away: SessionAway): string {
  const { agentGoesOn, isSilent, isUnreachable } = away;
  if (isUnreachable) {
    const closed = wentSilent(session) ? 'Running turns and tasks were closed. ' : '';
    return `${closed}Restart the agent where it runs. The session continues once it answers.`;
  }
  if (agentGoesOn)
    return 'The agent is still running, but Interlude can’t see it. Restart its runner to follow it again.';
  if (hasOpenWork(session)) {
    return `${isSilent ? 'The agent may have stopped;' : 'The agent most likely stopped with it;'} running items may be out of date.`;
  }
  return isSilent
    ? 'Nothing was running.'
    : 'Nothing was running. Your messages will be delivered when the runner is back.';
}

/** The command that restarts the runner; null for runners that Interlude didn’t start. */
function commandOf(session: SessionSummary, agent: AgentSummary | null, setting: string): string | null {
  const program = `${setting}npx interlude`;
  if (isInTerminal(agent)) return `${program} runner hooks`;
  // Only the demo itself can continue a demo agent.
  if (agent?.kind !== 'claude' || agent.status?.source === 'demo') return null;
  // The session is resumed under the agent's name and in its folder.
  const folder = agent.status?.cwd;
  const words = ['--agent', agent.id, ...(typeof folder === 'string' ? ['--cwd', folder] : []), '--resume', session.id];
  if (!words.every((word, index) => index % 2 === 0 || isSafeWord(word))) return null;
  return `${program} runner claude ${words.map(shellWord).join(' ')}`;
}

/** True for text from outside that is safe in a shell command: no option, no control character. */
function isSafeWord(word: string): boolean {
  return !word.startsWith('-') && nameText(word) === word;
}
