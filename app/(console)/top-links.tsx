import { Bot, Inbox } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { SettingsLink } from './settings-link';
import { InboxCount } from './when-idle-part';

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
      <Link href="/agents" title="Agents" className="hit grid size-5 place-items-center text-ink-3 hover:text-ink">
        <Icon of={Bot} size={15} strokeWidth={1.75} />
        <span className="sr-only">Agents</span>
      </Link>
      <SettingsLink />
    </>
  );
}
