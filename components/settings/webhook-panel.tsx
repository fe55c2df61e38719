'use client';

import type {
  WebhookDeliveries,
  WebhookDelivery,
  WebhookDeliveryState,
  WebhookStatus,
  WebhookTest,
} from '@interlude/protocol/inbox';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import { useQuery } from '@tanstack/react-query';
import { useMayAct } from '@/components/access/may-act';
import { KIND_WORD } from '@/components/inbox/inbox-labels';
import { fetchJson } from '@/components/live/fetch-json';
import { usePost } from '@/components/live/idempotent-post';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Section } from './fact-table';

const AGAIN_MS = 5_000;
const SHOWN = 20;
const STATE_WORD: Record<WebhookDeliveryState, string> = {
  waiting: 'waiting',
  delivered: 'delivered',
  withdrawn: 'withdrawn (no longer needed)',
  'gave-up': 'gave up',
};

/** The configured webhook, its recent deliveries and a test. */
export function WebhookPanel() {
  return (
    <Section id="webhook" title="Webhook" about="The server posts new inbox items to one address.">
      <Status />
    </Section>
  );
}

function Status() {
  const mayAct = useMayAct();
  const status = useQuery({
    queryKey: ['webhook'],
    queryFn: ({ signal }) => fetchJson<WebhookStatus>('/webhook', signal),
    refetchInterval: AGAIN_MS,
  });
  const log = useQuery({
    queryKey: ['webhook', 'deliveries'],
    queryFn: ({ signal }) => fetchJson<WebhookDeliveries>(`/webhook/deliveries?limit=${SHOWN}`, signal),
    refetchInterval: AGAIN_MS,
  });
  const error = status.error ?? log.error;
  if (status.data === undefined || log.data === undefined) {
    return (
      <p role="status" className="text-ink-3">
        {error === null ? 'Loading…' : `The webhook could not be loaded: ${error.message}`}
      </p>
    );
  }
  const { webhook, problem, waiting } = status.data;
  if (webhook === null) {
    return (
      <p className="max-w-prose text-pretty text-ink-2">
        {problem ?? 'No webhook is configured.'} To post new inbox items to a webhook, start the server with{' '}
        <code>INTERLUDE_WEBHOOK_URL</code>. Slack webhook URLs work. To sign the calls, also set{' '}
        <code>INTERLUDE_WEBHOOK_SECRET</code>.
      </p>
    );
  }
  return (
    <div className="flex max-w-prose flex-col gap-3">
      <p className="text-ink-2">
        New inbox items of{' '}
        {webhook.kinds.length === INBOX_KINDS.length ? 'all kinds' : plural(webhook.kinds.length, 'kind')} are posted to{' '}
        {webhook.host}, {webhook.signed ? 'signed' : 'not signed'}.
        {waiting > 0 && ` ${plural(waiting, 'delivery', 'deliveries')} waiting.`}
      </p>
      {mayAct && <TestCall />}
      {log.data.deliveries.length === 0 ? (
        <p className="text-ink-3">No deliveries yet. Send a test, or wait for the next inbox item.</p>
      ) : (
        <ul aria-label="Recent deliveries">
          {log.data.deliveries.map((delivery) => (
            <Delivery key={delivery.id} delivery={delivery} />
          ))}
        </ul>
      )}
    </div>
  );
}

function TestCall() {
  const [state, post] = usePost<WebhookTest>();
  const test = state.kind === 'done' ? state.response : null;
  const failure = state.kind === 'failed' ? state.reason : test?.error;
  return (
    <p className="flex flex-wrap items-baseline gap-x-3">
      <button
        type="button"
        disabled={state.kind === 'sending'}
        onClick={() => void post('/webhook/test')}
        className="h-8 pointer-coarse:h-11 rounded-md border border-line-strong px-3 hover:bg-raised"
      >
        {state.kind === 'sending' ? 'Sending…' : 'Send a test'}
      </button>
      <span role="status" className={failure == null ? 'text-ink-2' : 'text-failed'}>
        {failure == null ? test !== null && 'Test delivered.' : `Test failed: ${failure}.`}
      </span>
    </p>
  );
}

function Delivery({ delivery }: { delivery: WebhookDelivery }) {
  const { kind, state, attempts, error, createdAt } = delivery;
  return (
    <li className="flex flex-wrap items-baseline gap-x-3 list-row-line border-line border-b text-xs">
      <span className="font-medium">{KIND_WORD[kind]}</span>
      <span className={error === null ? 'text-ink-2' : 'text-failed'}>
        {STATE_WORD[state]}
        {attempts > 1 && `, ${attempts} attempts`}
        {error !== null && `: ${error}`}
      </span>
      <Ago at={createdAt} inWords className="ml-auto text-ink-3" />
    </li>
  );
}
