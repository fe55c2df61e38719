import type { Metadata } from 'next';
import { PageFrame } from '@/app/(console)/page-frame';
import { readPrincipal } from '@/app/(console)/read-in-turn';
import { Link } from '@/components/ui/link';
import { TERMS, type TermName, termAnchor } from '@/components/ui/terms';

const TITLE = 'How Interlude works';

export const metadata: Metadata = { title: TITLE };

export default async function HelpPage() {
  await readPrincipal();
  return (
    <PageFrame title={TITLE} back={{ href: '/', label: 'All sessions' }}>
      <div className="max-w-prose space-y-3 text-ink-2">
        <p>
          A runner beside each agent reports what the agent does, during your turns and between them. Each conversation
          is a session. The list of sessions puts first what needs you.
        </p>
        <p>
          When an agent asks for permission or has a question, the request appears in the{' '}
          <PageLink href="/inbox">inbox</PageLink> and in its session. Answer it in either place. What you approve is
          exactly what runs.
        </p>
        <p>
          <span className="pointer-coarse:hidden">
            Press <kbd>?</kbd> on a page for its keyboard shortcuts.
          </span>{' '}
          Programs use the <PageLink href="/settings/api">HTTP API</PageLink>. The folder <code>docs</code> of
          Interlude’s source explains how to run it and how to connect each kind of agent.
        </p>
      </div>
      <h2 className="mt-8 mb-1 font-medium">Words</h2>
      <dl className="max-w-prose">
        {(Object.keys(TERMS) as TermName[]).map((name) => (
          <div key={name} id={termAnchor(name)} className="scroll-mt-14 border-t py-3 target:bg-accent-soft">
            <dt className="font-medium">{TERMS[name].title}</dt>
            <dd className="text-ink-2">{TERMS[name].text}</dd>
          </div>
        ))}
      </dl>
    </PageFrame>
  );
}

function PageLink({ href, children }: { href: string; children: string }) {
  return (
    <Link href={href} className="underline underline-offset-2 hover:text-ink">
      {children}
    </Link>
  );
}
