import { Bot, Ellipsis, type IconNode, Inbox, MessagesSquare, Settings } from 'lucide';
import { Fragment } from 'react';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { Icon, Logo } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import type { PageShortcut } from '@/components/ui/shortcuts/use-shortcuts';
import { MoreButton } from './more-button';
import { type CountName, NavLink } from './nav-link';
import { SidebarToolsWhenIdle } from './when-idle-part';

interface Entry {
  href: string;
  label: string;
  icon: IconNode;
  shortcut: PageShortcut;
  count?: CountName;
  /** On a phone, the sheet that “More” opens has the link, not the bar. */
  isInMore?: boolean;
}

/** The pages of the navigation, in order. */
const ENTRIES: readonly Entry[] = [
  { href: '/inbox', label: 'Inbox', icon: Inbox, shortcut: 'page.inbox', count: 'needsYou' },
  { href: '/', label: 'Sessions', icon: MessagesSquare, shortcut: 'page.sessions', count: 'sessions' },
  { href: '/agents', label: 'Agents', icon: Bot, shortcut: 'page.agents', count: 'agents' },
  { href: '/settings', label: 'Settings', icon: Settings, shortcut: 'page.settings', isInMore: true },
];

/** The sidebar of wide screens, in three cells of the frame: logo and pages above the list of sessions, tools below. */
export function Sidebar() {
  return (
    <header className="hidden lg:contents">
      <div aria-hidden="true" className="border-r bg-sunken [grid-area:2/1/-1/2]" />
      <div className="z-20 min-w-0 px-2 [grid-area:pages]">
        <div className="flex h-12 items-center justify-between gap-2 pr-2 pl-[7px]">
          <Link href="/" className="hit flex items-center gap-2 font-medium">
            <Logo />
            <span className="icons:sr-only">Interlude</span>
          </Link>
          <span className="icons:hidden">
            <ConnectionBadge />
          </span>
        </div>
        <nav aria-label="Main">
          <ul className="flex flex-col gap-px py-1">
            {ENTRIES.map(({ icon, label, ...link }) => (
              <Fragment key={label}>
                <li>
                  <NavLink {...link} label={label} look="row">
                    <Icon of={icon} size={16} strokeWidth={1.75} className="shrink-0" />
                  </NavLink>
                </li>
                {link.href === '/agents' && <li id="saved-views" className="icons:hidden" />}
              </Fragment>
            ))}
          </ul>
        </nav>
      </div>
      <div className="z-20 flex min-h-11 items-center gap-1 px-2 py-1.5 icons:min-h-[152px] icons:flex-col [grid-area:tools]">
        <SidebarToolsWhenIdle />
      </div>
    </header>
  );
}

/** The navigation of phones and tablets. */
export function BottomBar() {
  const inMore = ENTRIES.filter(({ isInMore }) => isInMore);
  return (
    <nav aria-label="Main" className="bottom-bar grid grid-cols-4 border-t bg-sunken lg:hidden">
      {ENTRIES.filter(({ isInMore }) => !isInMore).map(({ icon, shortcut, label, ...link }) => (
        <NavLink key={label} {...link} label={label} look="tab">
          <Icon of={icon} size={20} strokeWidth={1.75} />
        </NavLink>
      ))}
      <MoreButton
        links={inMore.map(({ href, label, icon }) => ({
          href,
          label,
          icon: <Icon of={icon} size={18} strokeWidth={1.75} className="shrink-0" />,
        }))}
      >
        <Icon of={Ellipsis} size={20} strokeWidth={1.75} />
      </MoreButton>
    </nav>
  );
}
