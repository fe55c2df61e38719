'use client';

import { clsx } from 'clsx';
import { usePathname, useRouter } from 'next/navigation';
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { Link } from '@/components/ui/link';
import { ListSearch, useStrip } from '@/components/ui/list-controls';
import { markSetting } from './setting';
import { NO_KEYBOARD, pagesFor, searchSettings } from './settings-index';

/** Links between the settings pages, and a search for single settings. Only admins see admin pages. */
export function SettingsNav({ isAdmin }: { isAdmin: boolean }) {
  const path = usePathname();
  const router = useRouter();
  const [text, setText] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const found = searchSettings(text, isAdmin);
  // A link may lead to a setting, too.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the fragment belongs to the path
  useEffect(() => markSetting(decodeURIComponent(location.hash.slice(1))), [path]);
  const go = (href: string) => {
    setText('');
    markSetting(href.split('#')[1] ?? '');
    router.push(href);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const stops = [field.current, ...event.currentTarget.querySelectorAll<HTMLElement>('[data-found]')];
    const at = stops.indexOf(event.target as HTMLInputElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && at !== -1 && found.length > 0) stops[at + step]?.focus();
    else if (event.key === 'Enter' && at === 0 && found[0] !== undefined) go(found[0].href);
    else if (event.key === 'Escape' && text !== '') {
      setText('');
      field.current?.focus();
    } else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys move between its field and links
    <div onKeyDown={onKeyDown} className="mb-6 self-start @4xl:sticky @4xl:top-16 @4xl:mb-0">
      <search className="flex pb-2 @4xl:px-2 @4xl:pb-4">
        <ListSearch what="settings" placeholder="Search settings" field={field} value={text} onChange={setText} />
      </search>
      <p role="status" className="sr-only">
        {text !== '' && `${found.length} found`}
      </p>
      {text.trim() === '' ? (
        <Pages path={path} isAdmin={isAdmin} />
      ) : found.length === 0 ? (
        <p className="py-1.5 text-ink-3 @4xl:px-2 [overflow-wrap:anywhere]">No settings match “{text.trim()}”.</p>
      ) : (
        <ul aria-label="Settings found">
          {found.map(({ label, page, href }) => (
            <li key={label}>
              <Link
                href={href}
                data-found
                prefetch={false}
                onClick={(event) => {
                  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
                  event.preventDefault();
                  go(href);
                }}
                className="flex flex-wrap items-baseline gap-x-2 rounded py-1 @4xl:px-2 hover:bg-raised focus-visible:bg-raised pointer-coarse:py-3"
              >
                {label} <span className="text-ink-3 text-xs">{page}</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The pages: a column beside the page where it fits, else rows above it. */
function Pages({ path, isAdmin }: { path: string; isAdmin: boolean }) {
  const isHere = (href: string) => path === href || (href !== '/settings' && path.startsWith(`${href}/`));
  const pages = pagesFor(isAdmin);
  const strip = useStrip<HTMLElement>(path);
  return (
    <nav
      ref={strip}
      aria-label="Settings"
      className="strip scroll-sideways -mx-4 gap-x-4 border-line border-b px-4 sm:-mx-6 sm:px-6 @4xl:mx-0 @4xl:flex-col @4xl:border-0 @4xl:bg-none @4xl:p-0"
    >
      {pages.map(({ href, name, isPersonal }, index) => (
        <Link
          key={href}
          href={href}
          aria-current={isHere(href) ? 'page' : undefined}
          className={clsx(
            'flex items-center justify-center border-b py-2 @4xl:justify-start -outline-offset-2 @4xl:rounded @4xl:border-0 @4xl:px-2 @4xl:py-1 pointer-coarse:min-h-11',
            isHere(href)
              ? 'border-ink text-ink @4xl:bg-raised @4xl:font-medium'
              : 'border-transparent text-ink-2 hover:text-ink @4xl:hover:bg-raised/60',
            href === '/settings/shortcuts' && NO_KEYBOARD,
            !isPersonal && pages[index - 1]?.isPersonal && '@4xl:mt-4',
          )}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}
