import { Bot, CircleUser, Inbox } from 'lucide';
import Link from 'next/link';
import { Icon } from '@/components/ui/icon';
import { InboxCount } from './inbox-count';

const LINK = 'hit grid size-5 place-items-center text-ink-3 hover:text-ink';

/** The ways to the other pages. Rendered by the server: no script draws them. */
export function TopLinks() {
  return (
    <>
      <Link
        href="/inbox"
        title="Inbox"
        className="hit flex h-5 w-10 items-center justify-end text-ink-3 hover:text-ink"
      >
        <Icon of={Inbox} size={15} strokeWidth={1.75} />
        <span className="sr-only">Inbox</span>
        <InboxCount />
      </Link>
      <Link href="/agents" title="Agents" className={LINK}>
        <Icon of={Bot} size={15} strokeWidth={1.75} />
        <span className="sr-only">Agents</span>
      </Link>
      <SettingsLink />
    </>
  );
}

/** To who is signed in, and to the way out. */
export function SettingsLink() {
  return (
    <Link href="/settings" title="Settings and sign-out" prefetch={false} className={LINK}>
      <Icon of={CircleUser} size={15} strokeWidth={1.75} />
      <span className="sr-only">Settings and sign-out</span>
    </Link>
  );
}
