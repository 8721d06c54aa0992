/** A company's own issuer: another oidc-provider, on its own socket, with its own keys, that signs in whom the test says. */
import { createServer } from 'node:http';
import type { Provider } from 'oidc-provider';
import { loadOidcLibrary } from '../../../../src/server/issuer/load-library.js';
import { createSigningKey } from '../../../../src/server/tokens/signing-keys.js';

export interface Company extends AsyncDisposable {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Whoever is at the keyboard there; nobody, and it says no. */
  employee: string | undefined;
  readonly requests: string[];
  /** Lets our issuer in, whose address is known only now. */
  allow(redirectUri: string): void;
}

export async function startCompany(): Promise<Company> {
  const library = await loadOidcLibrary();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  const requests: string[] = [];
  const { material } = await createSigningKey();
  let provider: Provider | undefined;
  const company: Company = {
    url,
    clientId: 'ailsd-at-company',
    clientSecret: 'company secret: with & odd+characters',
    employee: 'emp-1',
    requests,
    allow(redirectUri) {
      provider = new library.Provider(url, {
        jwks: { keys: [JSON.parse(material.reveal())] },
        clients: [
          {
            client_id: company.clientId,
            client_secret: company.clientSecret,
            redirect_uris: [redirectUri],
          },
        ],
        cookies: {
          keys: ['company'],
          names: {
            session: 'company_session',
            interaction: 'company_interaction',
            resume: 'company_resume',
          },
        },
        claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email'] },
        conformIdTokenClaims: false,
        pkce: { required: () => true },
        features: { devInteractions: { enabled: false } },
        interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
        findAccount: (_ctx, id) => ({
          accountId: id,
          claims: () => ({
            sub: id,
            preferred_username: `name of ${id}`.replaceAll(' ', '.'),
            email: `${id}@company.example`,
          }),
        }),
        ttl: {
          AccessToken: 60,
          Grant: 60,
          IdToken: 60,
          Interaction: 60,
          Session: 60,
          AuthorizationCode: 60,
        },
        renderError: (ctx, out) => {
          ctx.body = JSON.stringify(out);
        },
      });
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  server.on('request', async (request, response) => {
    requests.push(`${request.method} ${request.url?.split('?', 1)[0]}`);
    if (provider === undefined) return response.writeHead(503).end();
    if (!request.url?.startsWith('/interaction/')) return provider.callback()(request, response);
    if (company.employee === undefined) {
      return provider.interactionFinished(request, response, { error: 'access_denied' });
    }
    const grant = new provider.Grant({ accountId: company.employee, clientId: company.clientId });
    grant.addOIDCScope('openid profile email');
    const result = {
      login: { accountId: company.employee },
      consent: { grantId: await grant.save() },
    };
    return provider.interactionFinished(request, response, result);
  });
  return company;
}
