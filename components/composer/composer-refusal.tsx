import Link from 'next/link';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import type { Refusal } from '@/lib/protocol/takes';

/** In the place of the composer where nobody would read what is written, before anybody has written it. */
export function ComposerRefusal({ refusal, sessionId }: { refusal: Refusal; sessionId: string }) {
  const { reason, instead } = refusal;
  return (
    <section aria-label="Composer" className="shrink-0 border-line border-t">
      <p className="mx-auto flex max-w-[960px] flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-3 text-ink-2 text-xs sm:pr-6 sm:pl-[86px]">
        <span className="min-w-0">
          You can’t write here: <Name text={reason} />.
        </span>
        {instead !== null && instead.sessionId !== sessionId && (
          <Link
            href={`/sessions/${encodeURIComponent(instead.sessionId)}`}
            aria-label={`Write to ${nameText(instead.agentId)} instead`}
            className="font-medium text-ink underline hover:text-accent"
          >
            Write to <Name text={instead.agentId} /> instead
          </Link>
        )}
      </p>
    </section>
  );
}
