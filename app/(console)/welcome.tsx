'use client';

import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import { CONNECTABLE_AGENTS, type ConnectableAgent, type FoundAgent } from '@interlude/protocol/connectable-agents';
import { ChevronRight } from 'lucide';
import { AppRouterContext } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { type ReactNode, useContext, useEffect } from 'react';
import { useCounts } from '@/components/live/use-counts';
import { useHydrated } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import type { CommandPlace } from '@/lib/server/access/command-place';

export interface WelcomePlace extends CommandPlace {
  /** False for readers who can't create a runner's token. */
  mayConnect: boolean;
  /** Agents on the server's machine; null if the server doesn't look. */
  found: readonly FoundAgent[] | null;
}

const DEMO = 'Eight sample agents work, wake by themselves and ask you things. You need no API key.';

/** Shown until the first session arrives. */
export function Welcome({ place }: { place: WelcomePlace }) {
  useFreshSearch(place.found !== null);
  const ours = useCommands(place);
  const connected = useCounts()?.agentStates.none ?? 0;
  const { found, isLocal, mayConnect, recording } = place;
  const agents = CONNECTABLE_AGENTS.flatMap((agent) => {
    const at = found?.find(({ id }) => id === agent.id)?.at;
    return at === undefined ? [] : [{ ...agent, at }];
  });
  const hasFound = agents.length > 0;
  const known = new Set(agents.map(({ commands }) => commands.join()));
  // Agents with the same commands share one entry: the last one's.
  const others = [...new Map(CONNECTABLE_AGENTS.map((agent) => [agent.commands.join(), agent])).values()].filter(
    ({ commands }) => !known.has(commands.join()),
  );
  return (
    <div className="mx-auto w-full max-w-2xl px-4 pt-[8vh] pb-16">
      <h2 className="font-medium text-xl tracking-tight">Nothing is running yet</h2>
      {mayConnect ? (
        <>
          <p className="mt-1.5 text-ink-2 text-md">
            {isLocal
              ? 'Run a command below in a terminal on the machine that runs Interlude.'
              : 'Run a command below on the machine of your agent, in a folder with Interlude’s runner.'}{' '}
            Your session appears here with its first event. Or{' '}
            <a href="#demo" className="underline underline-offset-2 hover:text-ink">
              watch a demo
            </a>
            .
          </p>
          <p role="status" className="mt-3 flex items-baseline gap-2 text-ink-3 text-xs">
            <span aria-hidden className="size-1.5 shrink-0 animate-breathe self-center rounded-full bg-ink-3" />
            {connected > 0 ? (
              <span>
                <Link href="/agents" className="font-medium text-working underline underline-offset-2">
                  {plural(connected, 'agent')} connected
                </Link>
                . Give an agent a task where you started it. Its session will appear here.
              </span>
            ) : (
              <>
                {found?.length === 0 && 'No agent was found on the machine that runs Interlude. '}
                Waiting for the first session. This page updates by itself.
              </>
            )}
          </p>
        </>
      ) : (
        <p className="mt-1.5 text-ink-2 text-md">
          Sessions appear here once an agent is connected. Ask an admin to connect one.
        </p>
      )}
      {mayConnect && !isLocal && (
        <Section title="First, a token for the runner">
          <p className="pb-3 text-ink-2">
            <Link href="/settings/access" className="underline underline-offset-2">
              Create a runner’s token
            </Link>{' '}
            and save it as <code>runner-token</code> in that folder. The commands read it from there.
          </p>
        </Section>
      )}
      {hasFound && (
        <Section title="Found on the machine that runs Interlude">
          <ul>
            {agents.map((agent) => (
              <Way key={agent.id} title={`Connect ${agent.title}`} why={agent.why} command={ours.connect(agent)}>
                <p className="truncate text-ink-3 text-xs" title={agent.at}>
                  Found: <span className="font-mono">{agent.at}</span>
                </p>
              </Way>
            ))}
          </ul>
        </Section>
      )}
      {mayConnect && (
        <>
          <div className="mt-6 divide-y border-y">
            <Fold title={hasFound ? 'Connect another agent' : 'Connect an agent'} isOpen={!hasFound || !isLocal}>
              {others.map((agent) => (
                <Way key={agent.id} title={agent.title} why={agent.why} command={ours.connect(agent)}>
                  <a
                    href={agent.install}
                    aria-label={`How to install it: ${agent.title}`}
                    target="_blank"
                    rel="noreferrer"
                    className="text-xs underline underline-offset-2 hover:text-ink"
                  >
                    How to install it
                  </a>
                </Way>
              ))}
            </Fold>
          </div>
          <Section title="Or watch a demo fleet">
            <ul id="demo">
              <Way
                why={isLocal ? `${DEMO} When you stop it, sessions that you didn’t use are archived.` : DEMO}
                command={ours.interlude('demo')}
              />
            </ul>
          </Section>
          <div className="mt-6 border-y">
            <Fold title="Replay a recording, or post events over HTTP">
              <Way
                title="Replay a recording"
                why="Plays a recorded Claude Code session as if it were live. Recordings of other agents work, too."
                command={ours.interlude(`replay ${recording}`)}
              />
              <Way
                title="Post events over HTTP"
                why="Posts a first turn of an agent of your own."
                command={ours.curl}
              />
            </Fold>
          </div>
        </>
      )}
      <p className="mt-6 text-ink-3">
        <Link href="/help" className="underline underline-offset-2 hover:text-ink">
          How Interlude works
        </Link>
      </p>
    </div>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="mt-8">
      <h3 className="font-medium text-lg">{title}</h3>
      {children}
    </section>
  );
}

function Fold({ title, isOpen = false, children }: { title: string; isOpen?: boolean; children: ReactNode }) {
  return (
    <details open={isOpen} className="group">
      <summary className="flex min-h-11 cursor-pointer list-none items-center gap-1.5 font-medium text-ink-2 hover:text-ink [&::-webkit-details-marker]:hidden">
        <Icon of={ChevronRight} size={14} className="text-ink-3 transition-transform group-open:rotate-90" />
        {title}
      </summary>
      <ul className="divide-y pb-3 sm:pl-5">{children}</ul>
    </details>
  );
}

/** One way to a first session. */
function Way(props: { title?: string; why: string; command: string; children?: ReactNode }) {
  const { title, why, command, children } = props;
  return (
    <li className="py-3">
      {title !== undefined && <h4 className="font-medium">{title}</h4>}
      <p className="text-ink-3">{why}</p>
      {children}
      <p className="mt-2 flex flex-wrap items-start gap-x-3 gap-y-2 rounded-md border bg-sunken px-3 py-2">
        <code className="min-w-0 flex-1 whitespace-pre-wrap text-ink-2 text-xs leading-5 [overflow-wrap:anywhere]">
          {command}
        </code>
        <CopyButton label="Copy command" text={() => command} className="min-h-5" />
      </p>
    </li>
  );
}

/** Searches again when the reader returns, perhaps from installing an agent. */
function useFreshSearch(isSearched: boolean): void {
  const router = useContext(AppRouterContext);
  useEffect(() => {
    if (!isSearched || router === null) return;
    const search = () => router.refresh();
    window.addEventListener('focus', search);
    return () => window.removeEventListener('focus', search);
  }, [isSearched, router]);
}

const TOKEN_FILE = './runner-token';

/** Commands that reach this server as pasted. */
function useCommands({ folder, setting, token, isLocal }: WelcomePlace) {
  const origin = useHydrated() ? location.origin + BASE_PATH : 'http://127.0.0.1:4319';
  const prefix = isLocal ? (setting ?? '') : `INTERLUDE_URL=${origin} INTERLUDE_TOKEN_FILE=${TOKEN_FILE} `;
  // In other folders, npx would run another project's program.
  const cdFolder = isLocal ? `cd ${folder} &&\n` : '';
  const interlude = (command: string) => `${cdFolder}${prefix}npx interlude ${command}`;
  // Elsewhere only the runner's package may be installed, whose program leaves out the word "runner".
  const run = (command: string) =>
    prefix + (isLocal ? `npx interlude ${command}` : `npx interlude-runner ${command.replace(/^runner /, '')}`);
  return {
    interlude,
    connect({ commands }: ConnectableAgent): string {
      const project = commands.some((one) => one.includes('~/my-project')) ? 'mkdir -p ~/my-project &&\n' : '';
      return cdFolder + project + commands.map(run).join(' &&\n');
    },
    curl: cdFolder + curl(origin, isLocal ? (token ?? '$INTERLUDE_TOKEN') : `$(cat ${TOKEN_FILE})`),
  };
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
