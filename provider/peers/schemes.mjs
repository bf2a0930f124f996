// One entry a provider: how its own library signs and verifies. "own" tells whether the
// library signs by itself; where it can only verify, node:crypto signs and the library
// judges that first, so that acuse is never asked to take what the library would not.
import crypto from "node:crypto";
import Stripe from "stripe";
import { Webhook as Svix } from "svix";
import { Webhook as Standard } from "standardwebhooks";
import * as octokit from "@octokit/webhooks-methods";
import twilio from "twilio";
import { verifyKey } from "discord-interactions";
import bolt from "@slack/bolt";
import sendgrid from "@sendgrid/eventwebhook";
import adyen from "@adyen/api-library";
import { WebhooksHelper } from "square";
import { Paddle } from "@paddle/paddle-node-sdk";

const json = { "Content-Type": "application/json" };
const now = () => Math.floor(Date.now() / 1000);
const hmac = (alg, key, text, encoding) => crypto.createHmac(alg, key).update(text).digest(encoding);
const key32 = () => crypto.randomBytes(32);
const address = (name) => `https://hooks.example.org/in/${name}`;

// standard is the Standard Webhooks scheme under either family of header names.
const standard = (Library, names) => ({
  own: true,
  secret: () => "whsec_" + key32().toString("base64"),
  make: (id) => ({ headers: { ...json, [`${names}-id`]: id }, body: JSON.stringify({ type: "invoice.paid", timestamp: new Date().toISOString(), data: { id: "inv_peer", note: "¡hola! 20 €" } }) }),
  sign: (r, secret, id) => {
    const at = new Date();
    r.headers[`${names}-timestamp`] = String(Math.floor(at / 1000));
    r.headers[`${names}-signature`] = new Library(secret).sign(id, at, r.body);
  },
  verify: (r, secret) => (new Library(secret).verify(r.body, r.headers), true), // throws when it refuses
  stamp: (h) => h[`${names}-timestamp`],
});

const adyenItem = (body) => JSON.parse(body).notificationItems[0].NotificationRequestItem;
const discordPair = crypto.generateKeyPairSync("ed25519");
const sendgridPair = crypto.generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const verifier = new adyen.hmacValidator();

export const schemes = {
  stripe: {
    library: "stripe", own: true,
    secret: () => "whsec_" + key32().toString("hex"),
    make: (id) => ({ headers: { ...json }, body: JSON.stringify({ id, object: "event", type: "invoice.paid", livemode: false, created: now(), data: { object: { id: "in_peer", object: "invoice" } } }, null, 2) }),
    sign: (r, secret) => { r.headers["stripe-signature"] = Stripe.webhooks.generateTestHeaderString({ payload: r.body, secret }); },
    verify: (r, secret) => Stripe.webhooks.constructEvent(r.body, r.headers["stripe-signature"], secret).object === "event",
    stamp: (h) => h["stripe-signature"].match(/t=(\d+)/)[1],
  },
  svix: { library: "svix", ...standard(Svix, "svix") },
  "standard-webhooks": { library: "standardwebhooks", ...standard(Standard, "webhook") },
  github: {
    library: "@octokit/webhooks-methods", own: true,
    secret: () => key32().toString("hex"),
    make: (id) => ({ headers: { ...json, "x-github-event": "push", "x-github-delivery": id }, body: JSON.stringify({ ref: "refs/heads/main", repository: { full_name: "example-org/hello" } }) }),
    sign: async (r, secret) => { r.headers["x-hub-signature-256"] = await octokit.sign(secret, r.body); },
    verify: (r, secret) => octokit.verify(secret, r.body, r.headers["x-hub-signature-256"]),
  },
  twilio: {
    library: "twilio", own: true,
    secret: () => key32().toString("hex"),
    make: (id) => ({ headers: { "Content-Type": "application/x-www-form-urlencoded", "i-twilio-idempotency-token": id },
      body: new URLSearchParams({ MessageSid: "SM" + "0".repeat(32), SmsStatus: "received", Body: "Hola, ¿a qué hora?", From: "+34600000001", To: "+34600000002" }).toString() }),
    sign: (r, secret) => { r.headers["x-twilio-signature"] = twilio.getExpectedTwilioSignature(secret, address("twilio"), Object.fromEntries(new URLSearchParams(r.body))); },
    verify: (r, secret) => twilio.validateRequest(secret, r.headers["x-twilio-signature"], address("twilio"), Object.fromEntries(new URLSearchParams(r.body))),
  },
  slack: {
    library: "@slack/bolt", own: false,
    secret: () => crypto.randomBytes(16).toString("hex"),
    make: (id) => ({ headers: { ...json }, body: JSON.stringify({ type: "event_callback", event_id: id, team_id: "T0PEER", event: { type: "app_mention", channel: "C0PEER", text: "¡hola!", event_ts: "1.000100" } }) }),
    sign: (r, secret) => {
      const t = r.headers["x-slack-request-timestamp"] = String(now());
      r.headers["x-slack-signature"] = "v0=" + hmac("sha256", secret, `v0:${t}:${r.body}`, "hex");
    },
    verify: (r, secret) => {
      bolt.verifySlackRequest({ signingSecret: secret, body: r.body, headers: { "x-slack-signature": r.headers["x-slack-signature"], "x-slack-request-timestamp": Number(r.headers["x-slack-request-timestamp"]) } });
      return true;
    },
    stamp: (h) => h["x-slack-request-timestamp"],
  },
  adyen: {
    library: "@adyen/api-library", own: true,
    secret: () => key32().toString("hex"),
    make: (id) => ({ headers: { ...json }, body: JSON.stringify({ live: "false", notificationItems: [{ NotificationRequestItem: { additionalData: { hmacSignature: "" }, amount: { currency: "EUR", value: 4250 },
      eventCode: "AUTHORISATION", eventDate: new Date().toISOString(), merchantAccountCode: "PeerECOM", merchantReference: "pedido-1042", pspReference: id, success: "true" } }] }) }),
    sign: (r, secret) => {
      const doc = JSON.parse(r.body), item = doc.notificationItems[0].NotificationRequestItem;
      item.additionalData.hmacSignature = verifier.calculateHmac(item, secret);
      r.body = JSON.stringify(doc);
    },
    verify: (r, secret) => verifier.validateHMAC(adyenItem(r.body), secret),
    tamper: (body) => body.replace("4250", "9250"), // only eight fields are signed
  },
  square: {
    library: "square", own: false,
    secret: () => key32().toString("base64url"),
    make: (id) => ({ headers: { ...json }, body: JSON.stringify({ merchant_id: "PEER", type: "payment.updated", event_id: id, created_at: new Date().toISOString(), data: { type: "payment", id: "peer_payment" } }) }),
    sign: (r, secret) => { r.headers["x-square-hmacsha256-signature"] = hmac("sha256", secret, address("square") + r.body, "base64"); },
    verify: (r, secret) => WebhooksHelper.verifySignature({ requestBody: r.body, signatureHeader: r.headers["x-square-hmacsha256-signature"], signatureKey: secret, notificationUrl: address("square") }),
  },
  paddle: {
    library: "@paddle/paddle-node-sdk", own: false,
    secret: () => "pdl_ntfset_" + key32().toString("hex"),
    make: (id) => ({ headers: { ...json }, body: JSON.stringify({ event_id: id, event_type: "transaction.completed", occurred_at: new Date().toISOString(), notification_id: "ntf_peer", data: { id: "txn_peer", status: "completed" } }) }),
    sign: (r, secret) => { const t = now(); r.headers["paddle-signature"] = `ts=${t};h1=${hmac("sha256", secret, `${t}:${r.body}`, "hex")}`; },
    verify: (r, secret) => new Paddle("pdl_sdbx_apikey_peer").webhooks.isSignatureValid(r.body, secret, r.headers["paddle-signature"]),
    stamp: (h) => h["paddle-signature"].match(/ts=(\d+)/)[1],
  },
  discord: {
    library: "discord-interactions", own: false, passed: true,
    secret: () => discordPair.publicKey.export({ format: "jwk" }).x && Buffer.from(discordPair.publicKey.export({ format: "jwk" }).x, "base64url").toString("hex"),
    make: (id) => ({ headers: { ...json }, body: JSON.stringify({ id, application_id: "1", type: 2, token: "peer", version: 1, channel_id: "5", data: { id: "6", name: "hola", type: 1 } }) }),
    sign: (r) => {
      const t = r.headers["x-signature-timestamp"] = String(now());
      r.headers["x-signature-ed25519"] = crypto.sign(null, Buffer.from(t + r.body), discordPair.privateKey).toString("hex");
    },
    verify: (r, key) => verifyKey(r.body, r.headers["x-signature-ed25519"], r.headers["x-signature-timestamp"], key),
  },
  sendgrid: {
    library: "@sendgrid/eventwebhook", own: false, passed: true,
    secret: () => sendgridPair.publicKey.export({ format: "der", type: "spki" }).toString("base64"),
    make: (id) => ({ headers: { ...json }, body: JSON.stringify([{ email: "ada@example.org", timestamp: now(), event: "delivered", sg_event_id: id, sg_message_id: "peer" }]) + "\r\n" }),
    sign: (r) => {
      const t = r.headers["x-twilio-email-event-webhook-timestamp"] = String(now());
      r.headers["x-twilio-email-event-webhook-signature"] = crypto.sign("sha256", Buffer.from(t + r.body), sendgridPair.privateKey).toString("base64");
    },
    verify: (r, key) => {
      const hook = new sendgrid.EventWebhook();
      return hook.verifySignature(hook.convertPublicKeyToECDSA(key), r.body, r.headers["x-twilio-email-event-webhook-signature"], r.headers["x-twilio-email-event-webhook-timestamp"]);
    },
  },
};

// wrong is a secret of the same shape that signed nothing.
export function wrong(name, secret) {
  if (name === "discord") return Buffer.from(crypto.generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x, "base64url").toString("hex");
  if (name === "sendgrid") return crypto.generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey.export({ format: "der", type: "spki" }).toString("base64");
  return schemes[name].secret(secret);
}
