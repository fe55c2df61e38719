/**
 * Fills the times in the server's markup before they are painted: only the browser knows the time zone. Runs for each
 * part of the markup as it arrives, and stops at the end of the page. The formats are those of `TimeOfDay` and `Moment`.
 */
export const LOCAL_TIMES = `(()=>{
const now=new Date(),fill=()=>{for(const e of document.querySelectorAll('time[data-local]')){
const at=new Date(e.dateTime),kind=e.dataset.local;delete e.dataset.local;if(isNaN(at))continue;
let text=at.toTimeString().slice(0,kind.endsWith('s')?8:5);
if(kind[0]==='d'&&at.toDateString()!==now.toDateString()){
if(at.getFullYear()!==now.getFullYear())text=at.getFullYear()+' '+text;
text=at.getDate()+' '+at.toLocaleDateString('en',{month:'short'})+' '+text}
e.textContent=text;
}},seen=new MutationObserver(fill);
seen.observe(document,{childList:true,subtree:true});
addEventListener('DOMContentLoaded',()=>{fill();seen.disconnect()});
})()`;
