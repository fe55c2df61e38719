/** Window property with the token that the script found. */
const LEFT = 'interludeToken';

/**
 * Runs before everything else in the page: removes a token from the URL before other code can read it, and applies the
 * URL's theme before the first paint.
 */
export const FIRST_SCRIPT = `(()=>{
const found=/^#token=(.+)$/.exec(location.hash);
if(found){
history.replaceState(history.state,'',location.pathname+location.search);
Object.defineProperty(window,'${LEFT}',{value:found[1],configurable:true});
}
const theme=new URLSearchParams(location.search).get('theme');
const dark=theme==='dark'||(theme!=='light'&&matchMedia('(prefers-color-scheme: dark)').matches);
document.documentElement.classList.add(dark?'dark':'light');
})()`;

/** Returns the token from the fragment once; null if there was none. */
export function takeFragmentToken(): string | null {
  const found: unknown = Reflect.get(window, LEFT);
  Reflect.deleteProperty(window, LEFT);
  if (typeof found !== 'string') return null;
  try {
    return decodeURIComponent(found);
  } catch {
    return null;
  }
}
