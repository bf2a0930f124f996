package demo

// Words are what the demo prints in one language; the tests hold both to the same
// keys.
type Words map[string]string

// WordsOf gives the words of "es" or, for anything else, English.
func WordsOf(language string) Words {
	if language == "es" {
		return spanish
	}
	return english
}

var english = Words{
	"folder":     "acuse demo: everything in %s, removed at the end",
	"in":         "  events come in at  %s",
	"app":        "  the app            %s (fails, is slow, breaks connections, is down for 4 s in every 20)",
	"dashboard":  "  dashboard          %s",
	"once":       "                     (the link logs in, once)",
	"for":        "runs for %v",
	"until":      "Ctrl-C ends it and prints what was counted",
	"drain":      "the senders stopped; waiting for what is still queued",
	"accepted":   "accepted    %d",
	"duplicates": "duplicates  %d (recognised, not delivered again)",
	"forged":     "forged      %d, of them passed %d",
	"delivered":  "delivered   %d (the app was asked %d times)",
	"dead":       "dead        %d",
	"signatures": "signatures that the app refused: %d",
	"unsent":     "events without a 2xx: %d",
	"orders":     "orders in the app: %d of %d, none twice",
	"faulty":     "orders in the app: %d of %d, %d TWICE, %d for unknown events",
}

var spanish = Words{
	"folder":     "acuse demo: todo en %s, se borra al final",
	"in":         "  los eventos entran por  %s",
	"app":        "  la app                  %s (falla, es lenta, corta conexiones, se cae 4 s de cada 20)",
	"dashboard":  "  panel                   %s",
	"once":       "                          (el enlace abre la sesión, una vez)",
	"for":        "dura %v",
	"until":      "Ctrl-C lo termina e imprime lo contado",
	"drain":      "los emisores pararon; se espera a lo que sigue en cola",
	"accepted":   "aceptados   %d",
	"duplicates": "duplicados  %d (reconocidos, no se entregan otra vez)",
	"forged":     "falsos      %d, de ellos pasaron %d",
	"delivered":  "entregados  %d (a la app se le pidió %d veces)",
	"dead":       "fallidos    %d",
	"signatures": "firmas que la app rechazó: %d",
	"unsent":     "eventos sin un 2xx: %d",
	"orders":     "pedidos en la app: %d de %d, ninguno dos veces",
	"faulty":     "pedidos en la app: %d de %d, %d DOS VECES, %d de eventos desconocidos",
}
