/** The page the browser is left with after a login by redirect. Fixed text: nothing from the request is repeated. */
const PAGES = {
  done: { title: 'Logged in', text: 'You can close this window and go back to the terminal.' },
  failed: { title: 'Not logged in', text: 'The terminal says why. You can close this window.' },
  leaving: { title: 'Logging in', text: 'Your browser is on its way to the server.' },
  unknown: { title: 'Nothing here', text: 'This address is for one login only.' },
} as const;

export function webPage(kind: keyof typeof PAGES): string {
  const { title, text } = PAGES[kind];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} · ailsd</title>
<style>
:root { color-scheme: light dark; font: 1.1rem/1.5 system-ui, sans-serif; }
body { display: grid; place-content: center; min-height: 90vh; margin: 1rem; text-align: center; }
</style>
<main><h1>${title}</h1><p>${text}</p></main>
</html>
`;
}
