'use client';

import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import { useHydrated } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import type { CommandPlace } from '@/lib/server/access/command-place';

/** Shown until the first session. */
export function Welcome({ place }: { place: CommandPlace }) {
  const origin = useHydrated() ? location.origin + BASE_PATH : 'http://127.0.0.1:4319';
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-[12vh]">
      <h2 className="font-medium text-xl tracking-tight">Nothing is running yet</h2>
      <p className="mt-1.5 text-ink-2 text-md">
        Sessions appear here when their agents send the first event. To start one, open a terminal on this server’s
        machine, in Interlude’s folder
        {place.token === null && (
          <>
            {' '}
            and with <code>INTERLUDE_TOKEN</code> set to this server’s token
          </>
        )}
        :
      </p>
      <ol className="mt-8">
        {firstSteps(origin, place).map(({ what, why, at, command }) => (
          <li key={what} className="border-line border-t py-4">
            <h3 className="font-medium">{what}</h3>
            <p className="text-ink-3">{why}</p>
            {at !== undefined && (
              <p className="truncate text-ink-3 text-xs" title={at}>
                Found: <span className="font-mono">{at}</span>
              </p>
            )}
            <p className="mt-2 flex items-start gap-3">
              <code className="min-w-0 flex-1 whitespace-pre-wrap text-ink-2 text-xs [overflow-wrap:anywhere]">
                {command}
              </code>
              <CopyButton label="Copy command" text={() => command} />
            </p>
          </li>
        ))}
      </ol>
    </div>
  );
}

interface FirstStep {
  what: string;
  why: string;
  /** Path on this machine. */
  at?: string;
  command: string;
}

/**
 * Ways to start a first session, each with a command that works as pasted in Interlude's folder. Agents found on this
 * machine come first.
 */
function firstSteps(origin: string, { setting, token, found, recording }: CommandPlace): FirstStep[] {
  const ours = (command: string) => `${setting ?? `INTERLUDE_URL=${origin} `}npx interlude ${command}`;
  const isFound = (kind: string) => found.some((one) => one.kind === kind);
  return [
    ...found.map(({ title, why, commands, at }) => ({
      what: `Connect ${title}`,
      why,
      at,
      command: `${commands.some((one) => one.includes('~/my-project')) ? 'mkdir -p ~/my-project &&\n' : ''}${commands.map(ours).join(' &&\n')}`,
    })),
    ...(isFound('claude')
      ? []
      : [
          {
            what: 'Run Claude Code',
            why: 'Send messages to the agent and follow its work here, within turns and between them. Use one of your projects, or start with an empty one.',
            command: `mkdir -p ~/my-project &&\n${ours('runner claude --cwd ~/my-project')}`,
          },
        ]),
    ...(isFound('hooks')
      ? []
      : [
          {
            what: 'Follow your terminals',
            why: 'Hooks send your Claude Code terminal sessions here.',
            command: `${ours('hooks install')} &&\n${ours('runner hooks')}`,
          },
        ]),
    {
      what: 'Watch a demo fleet',
      why: 'Agents replay real work: background tasks finish, and agents wake by themselves. One of them replies to you.',
      command: ours('demo'),
    },
    {
      what: 'Replay a recording',
      why: 'Replays a recorded Claude Code session as if it were live. Recordings of other agents work, too.',
      command: ours(`replay ${recording}`),
    },
    {
      what: 'Connect any other agent',
      why: 'Interlude has runners for Codex, OpenCode, ACP, AG-UI and AgentAPI: see “runner --help”. Any other agent can post events over HTTP. This command posts a first turn.',
      command: curl(origin, token ?? '$INTERLUDE_TOKEN'),
    },
  ];
}

/** Uses the time as epoch, so pasting the command again posts no duplicates. */
function curl(origin: string, token: string): string {
  const run = `"threadId":"s1","runId":"'$now'"`;
  const events = [
    `{"type":"RUN_STARTED",${run}}`,
    `{"type":"TEXT_MESSAGE_CHUNK","role":"assistant",\n      "messageId":"'$now'","delta":"Hello."}`,
    `{"type":"RUN_FINISHED",${run}}`,
  ];
  const records = events.map(
    (event, index) =>
      `    {"seq":${index + 1},"kind":"event","occurredAt":'$now',\n     "agentId":"my-agent","sessionId":"s1","event":\n     ${event}}`,
  );
  return [
    'now=$(date +%s)000',
    // piped, because other users of the machine can read arguments
    `printf 'authorization: Bearer %s' "${token}" |`,
    `curl -s ${origin}/api/v1/events -H @- -d '{`,
    `  "producer":{"id":"my-agent","epoch":'$now'},`,
    `  "records":[\n${records.join(',\n')}]}'`,
  ].join('\n');
}
